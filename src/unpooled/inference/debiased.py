"""Confidence intervals for the coefficients of a sparse model (Zhang and Zhang 2014; Javanmard and Montanari
2014; van de Geer, Bühlmann, Ritov and Dezeure 2014).

The lasso shrinks its coefficients. One Newton step with an approximate inverse Θ of G removes the bias:

    b = w + Θ·score,      se_j = √(dispersion · θ_jᵀGθ_j/N),   or robust   √(θ_jᵀMθ_j/N),

where G, score and M = squares come from ``quadratic_model`` and θ_j from the ``nodewise`` lasso. b_j is
asymptotically normal around the true coefficient, whether that is zero or not.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from unpooled._validation import is_number
from unpooled._wording import counted, joined
from unpooled.data.federated import FederatedData
from unpooled.exact.choose import choose
from unpooled.exact.clients import QuestionEngine
from unpooled.exact.fit import Fit
from unpooled.exact.rounds import Solve
from unpooled.exact.solve import bind, check_numbers, not_converged
from unpooled.exact.sufficient_statistics import SufficientStatistics
from unpooled.inference.argument_checks import (
    check_fit,
    check_model,
    check_rows,
    check_share,
    column_numbers,
    feature_names,
    refuse_site_intercepts,
)
from unpooled.inference.client_questions import ClientQuestions
from unpooled.inference.nodewise import default_lam, has_inverse, nodewise
from unpooled.inference.quadratic_model import (
    QuadraticModel,
    from_answers,
    from_statistics,
    refitted,
    significant,
)
from unpooled.inference.result import Inference
from unpooled.kernels.arrays import Array, Arrays, Float
from unpooled.problem import Problem

COVARIANCES = ("model", "sandwich")
BASES = ("significant", "support", "fit")
MANY = 10  # rows per column from which inverting the Gram matrix is an alternative
LEFT = 0.05  # share of a column's variance below which the nodewise lasso's own bias matters


def debiased_lasso(
    problem: Problem,
    data: FederatedData,
    fit: Fit | None = None,
    *,
    columns: Any = None,
    level: float = 0.95,
    lam_node: float | None = None,
    covariance: str = "model",
    sigma: float | None = None,
    base: str = "significant",
    min_rows: int = 10,
    tol: float = 1e-8,
    max_rounds: int = 500,
    engine: QuestionEngine | None = None,
) -> Inference:
    """Estimates, standard errors, p-values and intervals for coefficients of a squared or logistic model.

    Parameters
    ----------
    problem, data : the problem and the data. All rows must have the same weight.
    fit : the result of ``solve`` for them. If None, the problem is solved first.
    columns : features of interest, by number or name; None for all. A constant column (constant within every
        site, if each site has an intercept) gets NaN and a note; it is an error if all ``columns`` are
        constant.
    level : confidence level of the intervals.
    lam_node : λ of the nodewise lasso on standardised columns. None for 0.1·√(2 log p/N), 0 for the inverse.
    covariance : "model" (constant noise variance; binomial) or "sandwich" (robust to misspecification; one
        more round for the squared loss).
    sigma : the noise's standard deviation for the squared loss, if known. None estimates it from the
        residuals, with N minus the number of fitted parameters as degrees of freedom.
    base : for the logistic loss, the point at which the correction starts: the maximum likelihood on the
        selected columns ("support"), on those that are √(2 log p) standard errors from zero
        ("significant"), or the fit itself ("fit": fewer rounds, but intervals that miss large coefficients).
    min_rows : a client with fewer rows, or with a column in which fewer rows differ from the rest, refuses to
        send a Gram matrix or Hessian, which is an error here.
    tol, max_rounds, engine : as in ``solve``.
    """
    bound = bind(problem, data)
    check_numbers(tol, max_rounds, min_rows)
    check_model(bound, "debiased_lasso")
    check_rows(data, "debiased_lasso")
    _check_options(lam_node, covariance, sigma, base, problem)
    if covariance == "sandwich":
        refuse_site_intercepts(problem, "debiased_lasso with covariance='sandwich'")
    level, chosen = check_share("level", level), column_numbers(columns, data)
    if fit is not None:
        check_fit(fit, bound, data)
    questions = ClientQuestions.of(bound, data, engine, min_rows, "debiased_lasso")
    squared, notes = problem.loss.has_dispersion, list[str]()
    flat, model = _model(questions, fit, squared and covariance == "model", base, tol, max_rounds)
    degrees, noise = math.inf, 1.0
    if squared:
        n_intercepts = data.n_clients if problem.has_site_intercepts else bound.layout.n_intercepts
        degrees, noise = _noise(model, data.n_rows, n_intercepts, sigma)
    middle = model.G * noise**2
    if covariance == "sandwich":
        assert model.squares is not None
        middle = model.squares * (data.n_rows / degrees if math.isfinite(degrees) else 1.0)
        degrees = math.inf
    lam = default_lam(data.n_features, data.n_rows) if lam_node is None else float(lam_node)
    names = feature_names(data)
    fixed = [names[j] for j in chosen[~model.varies[chosen]]]
    if fixed:
        notes.append(_why_no_estimate(fixed, problem))
        if columns is not None and len(fixed) == len(chosen):
            raise ValueError(notes[-1])
    estimate, variance = _corrected(model, data, chosen, lam, middle, notes)
    return Inference(
        names=tuple(names[j] for j in chosen),
        columns=chosen,
        coef=flat[chosen],
        estimate=estimate,
        standard_error=np.sqrt(variance / data.n_rows),
        degrees=degrees,
        sigma=noise,
        level=level,
        lam_node=lam,
        covariance=covariance,
        n_rows=data.n_rows,
        ledger=questions.server.ledger,
        notes=notes,
    )


def _model(
    questions: ClientQuestions,
    fit: Fit | None,
    statistics_suffice: bool,
    base: str,
    tol: float,
    max_rounds: int,
) -> tuple[Float, QuadraticModel]:
    """The fit's flat vector, and the quadratic model of the loss at it, or at ``base`` if not squared."""
    bound, statistics = questions.problem, {} if fit is None else fit.statistics
    if fit is not None:
        flat = bound.layout.pack(fit.w, fit.intercept)
    else:
        flat, statistics = _solved(questions, tol, max_rounds)
    if statistics_suffice:
        w = flat[: bound.layout.n_coefficients]
        return flat, from_statistics(bound, statistics or questions.statistics(), w)
    if base == "fit" or bound.problem.loss.is_least_squares:
        return flat, from_answers(questions, flat)
    if base == "support":
        return flat, from_answers(questions, refitted(questions, flat)[0])
    return flat, from_answers(questions, significant(questions, flat))


def _noise(model: QuadraticModel, n_rows: int, n_intercepts: int, sigma: Any) -> tuple[float, float]:
    """Degrees of freedom and standard deviation of the residuals; (inf, ``sigma``) if ``sigma`` is given."""
    if sigma is not None:
        return math.inf, float(sigma)
    kept = int(np.count_nonzero(model.w))
    degrees = n_rows - kept - n_intercepts
    if degrees <= 0:
        raise ValueError(
            f"the fit has {kept} coefficients for {n_rows} rows, which leaves no degrees of freedom to "
            "estimate the noise variance: use a larger λ, or give sigma"
        )
    return float(degrees), math.sqrt(2.0 * model.loss * n_rows / degrees)


def _solved(questions: ClientQuestions, tol: float, max_rounds: int) -> tuple[Float, Arrays]:
    """Fit with the solver that ``solve`` would choose, in the same ledger; returns also its statistics."""
    bound, server = questions.problem, questions.server
    questions.check_width()
    solver, _ = choose(bound, "auto", questions.min_rows, True)
    task = Solve(solver, bound, solver.init(bound, np.zeros(bound.layout.size)))
    server.run([task], tol, max_rounds)
    questions.check_task(task)
    if task.certificate is None or task.certificate.relative > tol:
        not_converged([task], tol, server.ledger.rounds)
    statistics = task.state.arrays if isinstance(solver, SufficientStatistics) else {}
    return solver.estimate(bound, task.state), statistics


def _why_no_estimate(fixed: list[str], problem: Problem) -> str:
    """A sentence on columns that no estimate can be had of, and what to do."""
    be, have, them = ("is", "has", "it") if len(fixed) == 1 else ("are", "have", "them")
    if problem.has_site_intercepts:
        return (
            f"{joined(fixed)} {be} constant within every site and {have} no estimate: the sites' intercepts "
            "take up any effect. Give all sites one intercept (intercept=True; site_intercepts=False) to "
            f"estimate {them}"
        )
    value = "constant" if problem.intercept else "zero in all rows"
    return f"{joined(fixed)} {be} {value} and {have} no estimate"


def _corrected(
    model: QuadraticModel, data: FederatedData, chosen: Array, lam: float, middle: Float, notes: list[str]
) -> tuple[Float, Float]:
    """b_j and θ_jᵀ·middle·θ_j of the chosen columns; NaN for constant columns."""
    known, able = model.varies, model.varies[chosen]
    estimate, variance = np.full(len(chosen), np.nan), np.full(len(chosen), np.nan)
    if not able.any():
        return estimate, variance
    place = np.cumsum(known) - 1
    theta, failed = nodewise(model.G[np.ix_(known, known)], place[chosen[able]], lam)
    own = theta[np.arange(len(theta)), place[chosen[able]]] * np.diag(model.G)[chosen[able]]
    nearly = chosen[able][own * LEFT > 1.0]
    if lam > 0.0 and (nearly.size or failed):  # with λ = 0 intervals are wide, as they should be
        can_invert = data.n_rows >= MANY * data.n_features and has_inverse(model.G[np.ix_(known, known)])
        notes.append(_why_inexact([feature_names(data)[j] for j in nearly], failed, can_invert))
    estimate[able] = model.w[chosen[able]] + theta @ model.score[known]
    variance[able] = np.sum((theta @ middle[np.ix_(known, known)]) * theta, axis=1)
    return estimate, variance


def _why_inexact(nearly: list[str], failed: int, can_invert: bool) -> str:
    """A sentence on columns that others explain and on regressions that did not converge, with one remedy."""
    remedy = "drop columns"
    if can_invert:
        remedy += ", or set lam_node=0, which adds no bias (there are many more rows than columns)"
    elif not nearly:  # else it would shrink still more of what is left
        remedy += ", or raise lam_node"
    stopped = f"{counted(failed, 'nodewise regression')} did not converge"
    if not nearly:
        return f"{stopped}, as happens where columns are almost collinear: {remedy}"
    be = "is" if len(nearly) == 1 else "are"
    return (
        f"{joined(nearly)} {be} almost collinear with the other columns, which explain more than "
        f"{1 - LEFT:.0%} of the variance{f' ({stopped})' if failed else ''}: the intervals are too short. "
        f"{remedy[0].upper()}{remedy[1:]}"
    )


def _check_options(lam_node: Any, covariance: Any, sigma: Any, base: Any, problem: Problem) -> None:
    if base not in BASES:
        raise ValueError(f"base must be 'significant', 'support' or 'fit', got {base!r}")
    if lam_node is not None and (not is_number(lam_node) or not 0.0 <= lam_node < math.inf):
        raise ValueError(f"lam_node must be a number ≥ 0, got {lam_node!r}")
    if covariance not in COVARIANCES:
        raise ValueError(f"covariance must be 'model' or 'sandwich', got {covariance!r}")
    if sigma is not None:
        if not getattr(problem.loss, "has_dispersion", False):
            raise ValueError("sigma is the noise of the squared loss; logistic regression has none")
        if not is_number(sigma) or not 0.0 < sigma < math.inf:
            raise ValueError(f"sigma must be a positive number, got {sigma!r}")
