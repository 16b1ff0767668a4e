"""Exact solvers on rows in ten silos, against the best solvers there are for the same rows in one place."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import unpooled as up
from benchmarks import targets
from benchmarks.options import Options
from benchmarks.row import Row
from benchmarks.timing import alternate

SECTION = "exact"
CLIENTS = 10
TOLERANCE = 1e-8  # ours, a certified part of the null model's loss
AGREEMENT = 1e-6  # of the objective: a peer that ends further above ours solved something easier

Fit = Callable[[Any, Any, float], Any]


@dataclass(frozen=True)
class Task:
    """A pooled problem: rows, a loss, and λ as a part of the smallest one that gives zero."""

    name: str
    loss: Any
    n_rows: int
    p: int
    share: float

    @cached_property
    def data(self) -> up.FederatedData:
        """Gaussian rows, fifty true coefficients."""
        rng = np.random.default_rng(0)
        X = rng.standard_normal((self.n_rows, self.p))
        z = 0.3 * X[:, :50].sum(axis=1) + 0.5 * rng.standard_normal(self.n_rows)
        y = np.where(z > 0, 1.0, -1.0) if isinstance(self.loss, up.Logistic) else z
        return up.FederatedData.from_arrays(X, y, np.arange(self.n_rows) % CLIENTS)

    @cached_property
    def problem(self) -> up.Problem:
        """With its λ."""
        unit = up.Problem(self.loss, up.L1(1.0))
        return unit.with_lam(self.share * up.lambda_max(unit, self.data))


TASKS = [
    Task("lasso, N = 10 000, p = 500", up.Squared(), 10_000, 500, 0.05),
    Task("lasso, N = 2 000, p = 20 000", up.Squared(), 2_000, 20_000, 0.1),
    Task("sparse logistic, N = 5 000, p = 500", up.Logistic(), 5_000, 500, 0.05),
]


def _sklearn_lasso(X: Any, y: Any, lam: float) -> Any:
    from sklearn.linear_model import Lasso

    return Lasso(lam, fit_intercept=False, tol=1e-10, max_iter=100_000).fit(X, y)


def _sklearn_logistic(X: Any, y: Any, lam: float) -> Any:
    from sklearn.linear_model import LogisticRegression

    penalty = (
        {"l1_ratio": 1.0} if "penalty" not in LogisticRegression()._get_param_names() else {"penalty": "l1"}
    )
    return LogisticRegression(
        C=1 / (lam * len(y)), solver="liblinear", fit_intercept=False, tol=1e-9, max_iter=1000, **penalty
    ).fit(X, y)


def _celer_lasso(X: Any, y: Any, lam: float) -> Any:
    from celer import Lasso

    return Lasso(lam, fit_intercept=False, tol=1e-9).fit(X, y)


def _celer_logistic(X: Any, y: Any, lam: float) -> Any:
    from celer import LogisticRegression

    return LogisticRegression(C=1 / (lam * len(y)), tol=1e-9).fit(X, y)


def _skglm_lasso(X: Any, y: Any, lam: float) -> Any:
    from skglm import Lasso

    return Lasso(lam, fit_intercept=False, tol=1e-8).fit(X, y)


def _skglm_logistic(X: Any, y: Any, lam: float) -> Any:
    from skglm import SparseLogisticRegression

    return SparseLogisticRegression(lam, fit_intercept=False, tol=1e-8).fit(X, y)


PEERS: dict[str, tuple[str, Fit, Fit]] = {
    "scikit-learn": ("sklearn", _sklearn_lasso, _sklearn_logistic),
    "celer": ("celer", _celer_lasso, _celer_logistic),
    "skglm": ("skglm", _skglm_lasso, _skglm_logistic),
}


def rows(options: Options) -> Iterator[Row]:
    """Times as fast as each peer, on each task."""
    for task in TASKS:
        yield from _against_peers(task, options)


def _against_peers(task: Task, options: Options) -> Iterator[Row]:
    X, y = np.asarray(task.data.X), task.data.y
    lam = float(task.problem.penalty.lam)
    fit = up.solve(task.problem, task.data, tol=TOLERANCE)
    turns: dict[str, Callable[[], object]] = {
        "unpooled": lambda: up.solve(task.problem, task.data, tol=TOLERANCE)
    }
    excess: dict[str, float] = {}
    for name, (module, lasso, logistic) in PEERS.items():
        solve = logistic if isinstance(task.loss, up.Logistic) else lasso
        title = f"{task.name}: against {name} on the pooled rows"
        try:
            importlib.import_module(module)
        except ImportError:
            yield Row(SECTION, title, None, "×", detail=f"not installed: pip install {module}")
            continue
        w = np.ravel(_quietly(solve, X, y, lam).coef_)
        excess[name] = task.problem.objective(w, task.data) / fit.certificate.objective - 1.0
        turns[name] = lambda solve=solve: _quietly(solve, X, y, lam)
    times = alternate(turns, options.repeats)
    for name, above in excess.items():
        low, high = times.spread(name, "unpooled")
        seconds = f"{times.median('unpooled'):.2f} s; {low:.2f}–{high:.2f}"
        detail = f"rounds: {fit.rounds}, {seconds}; their objective is {above:+.0e} from ours"
        if above > AGREEMENT:
            detail += ", which is not solved"
        target = targets.EXACT.get((task.p, name))
        title = f"{task.name}: against {name} on the pooled rows"
        yield Row(SECTION, title, times.ratio(name, "unpooled"), "×", target, detail)


def _quietly(solve: Fit, X: Any, y: Any, lam: float) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of peers, about versions of their own dependencies
        return solve(X, y, lam)
