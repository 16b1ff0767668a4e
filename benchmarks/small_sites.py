"""Rounds that small sites and rare columns cost: with the default guard, against the same without one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes

import unpooled as up
from benchmarks import targets
from benchmarks.options import Options
from benchmarks.row import Row

SECTION = "small sites"
N_LAMBDAS = 20


def rows(options: Options) -> Iterator[Row]:
    """Times as many rounds as with ``min_rows=0``, to fit, to follow a path and to cross-validate."""
    for name, loss, data in (_diabetes(), _cancer(), _schools(up.Squared()), _schools(up.Logistic())):
        problem = up.Problem(loss, up.L1(1.0), intercept=True)
        lam = 0.02 * up.lambda_max(problem, data)
        calls: dict[str, Callable[..., Any]] = {
            "one fit": lambda problem=problem, data=data, lam=lam, **options: up.solve(
                problem.with_lam(lam), data, **options
            ),
            f"{N_LAMBDAS} λ": lambda problem=problem, data=data, **options: up.path(
                problem, data, n_lambdas=N_LAMBDAS, **options
            ),
            "5 folds": lambda problem=problem, data=data, **options: up.cross_validate(
                problem, data, n_lambdas=N_LAMBDAS, **options
            ),
        }
        for what, call in calls.items():
            free, guarded = call(min_rows=0).rounds, call().rounds
            detail = f"rounds: {guarded} against {free}"
            yield Row(SECTION, f"{name}, {what}", guarded / free, "×", targets.SMALL_SITES, detail)


def _uneven(n_rows: int, n_sites: int, seed: int) -> Any:
    """Sites of very different sizes, the smallest of a row or two."""
    share = np.square(np.arange(1, n_sites + 1))
    return np.random.default_rng(seed).choice(n_sites, n_rows, p=share / share.sum())


def _diabetes() -> tuple[str, Any, up.FederatedData]:
    X, y = load_diabetes(return_X_y=True)
    data = up.FederatedData.from_arrays(X / X.std(axis=0), y / y.std(), _uneven(len(y), 12, 0))
    return "diabetes, 12 sites, squared", up.Squared(), data


def _cancer() -> tuple[str, Any, up.FederatedData]:
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    data = up.FederatedData.from_arrays(X, y.astype(np.float64), _uneven(len(y), 8, 1))
    return "breast cancer, 8 sites, logistic", up.Logistic(), data


def _schools(loss: Any) -> tuple[str, Any, up.FederatedData]:
    """25 schools of 8 to 119 pupils, with dummies of which one is rare."""
    rng = np.random.default_rng(3)
    sizes = rng.integers(8, 120, 25)
    school = np.repeat(np.arange(25), sizes)
    X = rng.standard_normal((len(school), 12)) + 0.4 * rng.standard_normal((25, 12))[school]
    level = rng.choice(5, len(school), p=[0.6, 0.2, 0.1, 0.07, 0.03])
    X = np.hstack([X, np.eye(5)[level][:, 1:]])
    w = np.zeros(16)
    w[[0, 1, 2, 3, 12, 15]] = [1.0, -1.0, 0.5, -0.5, 0.7, -1.0]
    z = X @ w + 0.3 * rng.standard_normal(25)[school]
    kind = "logistic" if isinstance(loss, up.Logistic) else "squared"
    y = (
        (z > rng.logistic(size=len(z))).astype(float)
        if kind == "logistic"
        else z + rng.standard_normal(len(z))
    )
    return f"25 schools, {kind}", loss, up.FederatedData.from_arrays(X, y, school)
