"""The fit of a study: an exact solver, a path, a cross-validation, or a federated algorithm."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from unpooled import algorithms
from unpooled._ledger import Ledger
from unpooled.aggregation.base import Aggregate, CoordinateMedian, Mean, TrimmedMean
from unpooled.engines.remote.engine import Remote
from unpooled.exact.certificate import Certificate
from unpooled.exact.cross_validation import cross_validate, folds_of
from unpooled.exact.path import path
from unpooled.exact.selection import information, select
from unpooled.exact.solve import solve
from unpooled.kernels.arrays import Float
from unpooled.preprocessing.site_intercepts import site_intercepts
from unpooled.problem import Problem
from unpooled.runs.run import Status
from unpooled.runs.simulate import simulate
from unpooled.study.agreement import Agreement
from unpooled.study.config import Study, StudyError
from unpooled.study.modelling import stated
from unpooled.study.sites_data import SitesData

SECOND_ORDER = ("gram", "hessian")
ALGORITHMS: dict[str, Any] = {
    "fast_fedda": algorithms.FastFedDA,
    "mc_fedda": algorithms.MCFedDA,
    "c_fedda": algorithms.CFedDA,
    "fedda": algorithms.FedDA,
    "fedmid": algorithms.FedMiD,
    "fedavg": algorithms.FedAvg,
}


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model for scaled rows; ``intercept`` None, a number, (C,), or by site."""

    w: Float
    intercept: Any
    lam: float
    solver: str
    certificate: Certificate | None
    converged: bool
    ledger: Ledger
    notes: list[str]
    curve: Mapping[str, list[float]] = field(default_factory=dict)


def fitted(study: Study, agreement: Agreement, data: SitesData, refused: Mapping[str, list[str]]) -> Fitted:
    """Fit; ``refused`` has what sites do not send."""
    problem = stated(study, agreement)
    if study.is_federated:
        return _federated(study, problem, data)
    notes = _refusals(study, refused) + _alone(study)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = _exact(study, problem, data, second_order=not notes)
    notes += [*model.notes, *(f"{each.message}." for each in caught)]
    if not problem.has_site_intercepts:
        return replace(model, notes=notes)
    own = site_intercepts(problem.with_lam(model.lam), data, model.w, engine=Remote(retries=0))
    by_site = dict(zip(own.ids, own.values, strict=True))
    return replace(model, notes=notes, intercept=by_site, ledger=model.ledger + own.ledger)


def _refusals(study: Study, refused: Mapping[str, list[str]]) -> list[str]:
    """A sentence for each site that sends no second-order statistics; others cannot be done without."""
    for site, kinds in refused.items():
        needed = [kind for kind in kinds if kind not in (*SECOND_ORDER, "diagonal")]
        if needed and not study.is_federated:
            raise StudyError(f"{site} does not send {', '.join(needed)}, without which nothing can be fitted")
    if study.solver in ("sufficient_statistics", "prox_newton") and refused:
        who = ", ".join(refused)
        raise StudyError(f'solver.method = "{study.solver}" needs what {who} does not send; "auto" does not')
    return [
        f"{site} does not send {', '.join(kinds)}: gradients were used." for site, kinds in refused.items()
    ]


def _alone(study: Study) -> list[str]:
    """A sentence where Newton steps would pass points at which few rows are curved."""
    if study.model != "huber" or study.solver != "auto":
        return []
    return ["Hessians of Huber's loss can be about single rows: gradients were used."]


def _exact(study: Study, problem: Problem, data: SitesData, *, second_order: bool) -> Fitted:
    options: dict[str, Any] = {
        "solver": study.solver,
        "tol": study.tolerance,
        "max_rounds": study.max_rounds,
        "min_rows": study.minimum_rows,
        "second_order": second_order,
        "engine": Remote(retries=0),
    }
    if not isinstance(study.lam, str):
        fit = solve(problem, data, **options)
        return Fitted(
            w=fit.w,
            intercept=fit.intercept,
            lam=study.lam,
            solver=fit.solver,
            certificate=fit.certificate,
            converged=fit.converged,
            ledger=fit.ledger,
            notes=fit.notes,
        )
    options |= {"n_lambdas": study.n_lambdas, "ratio": study.ratio}
    if study.lam == "cv":
        try:
            folds_of(study.folds, data, study.seed, study.fold_rows)
        except ValueError as error:
            raise StudyError(f"model.folds = {study.folds!r}: {error}") from None
        options |= {
            "folds": study.folds,
            "fold_rows": study.fold_rows,
            "rule": study.rule,
            "seed": study.seed,
        }
        found = cross_validate(problem, data, **options)
        whole, i = found.path, found.index
        curve = {"held_out_loss": found.mean.tolist(), "standard_error": found.se.tolist()}
        said = (
            f"λ = {found.lam:.6g} of {len(whole.lambdas)} has "
            f"{'the least held-out loss' if study.rule == 'min' else 'a loss within one standard error'}: "
            f"{found.mean[i]:.6g} ± {found.se[i]:.2g} over {found.losses.shape[1]} folds."
        )
    else:
        whole = path(problem, data, **options)
        i = select(whole, study.criterion)
        values = information(whole, study.criterion)
        curve = {study.criterion: values.tolist()}
        said = f"λ = {whole.lambdas[i]:.6g} of {len(whole.lambdas)} has the least {study.criterion.upper()}."
    w, intercept = whole.model(i)
    return Fitted(
        w=w,
        intercept=intercept,
        lam=float(whole.lambdas[i]),
        solver=whole.solver,
        certificate=whole.certificates[i],
        converged=bool(whole.converged[i]),
        ledger=whole.ledger,
        notes=[*whole.notes, said],
        curve={"lambda": whole.lambdas.tolist(), "non_zero": whole.n_nonzero.tolist(), **curve},
    )


def _aggregate(asked: str | float) -> Aggregate:
    if isinstance(asked, str):
        return CoordinateMedian() if asked == "median" else Mean()
    return TrimmedMean(asked)


def _federated(study: Study, problem: Problem, data: SitesData) -> Fitted:
    algorithm = ALGORITHMS[study.solver](local_steps=study.local_steps)
    bound = study.norm_bound or math.inf
    run = simulate(
        algorithm,
        problem,
        data,
        rounds=study.rounds,
        batch_size=study.batch_size or None,
        seed=study.seed,
        aggregate=_aggregate(study.aggregate),
        every=study.rounds,  # the objective costs a round of its own
        engine=Remote(minimum=study.minimum_sites, retries=0, norm_bound=bound),
        progress=False,
    )
    if run.status != Status.COMPLETED:
        raise StudyError(f"{study.solver} {run.status}: {run.message}")
    return Fitted(
        w=run.w,
        intercept=run.intercept,
        lam=float(study.lam),
        solver=type(algorithm).__name__,
        certificate=None,
        converged=True,
        ledger=run.ledger,
        notes=[*run.notes],
    )
