"""A second-order model of the loss at a point, from sums over all clients' rows.

    L(v) ≈ L(w) − scoreᵀ(v − w) + ½(v − w)ᵀG(v − w),

with an unpenalised intercept minimised out: the squared loss centres the rows, other losses centre them with
weights ℓ''. Least squares needs only its one round of statistics. Other losses are expanded at the maximum
likelihood on few columns. At the lasso itself, shrinkage makes ℓ'' too large and intervals miss large
coefficients; on all columns that a small λ selects, overfitting makes ℓ'' too small. So only columns that are
√(2 log p) standard errors from zero are kept (docs/inference.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unpooled.exact.site import unpacked
from unpooled.exact.sufficient_statistics import quadratic
from unpooled.inference.client_questions import ClientQuestions
from unpooled.kernels.arrays import Array, Arrays, Float
from unpooled.problem import BoundProblem

FLAT = 1e-12  # share of a column's mean square that centring leaves of a constant column
REFIT_ROUNDS = 25
STILL = 1e-3  # limit on the last step, relative to the largest coefficient
SMALL = 1e-4  # limit on the last Newton step in standard errors; the next would be about its square


@dataclass(frozen=True, eq=False)
class QuadraticModel:
    """w and score (p,), G (p, p), loss L(w), and ``varies`` (p,): whether a column is not constant.

    ``squares`` (p, p) is the mean of (ℓ')² x̃x̃ᵀ, if requested.
    """

    w: Float
    G: Float
    score: Float
    loss: float
    varies: Array
    squares: Float | None = None


def from_statistics(problem: BoundProblem, statistics: Arrays, w: Float) -> QuadraticModel:
    """The model of least squares, from statistics already collected."""
    G, c, yy = quadratic(problem, statistics)
    Gw = G @ w
    loss = max(0.5 * yy + float(w @ (0.5 * Gw - c)), 0.0)
    return QuadraticModel(w, G, c - Gw, loss, _varies(G, statistics["gram"], statistics.get("center")))


def from_answers(questions: ClientQuestions, flat: Float) -> QuadraticModel:
    """The model at a flat point, in one round: gradient, Hessian and squares of all features."""
    layout, size = questions.problem.layout, len(flat)
    p = layout.n_coefficients
    [total] = questions.at(flat, np.arange(size), squares=True)
    H, M, g = unpacked(total["hessian"], size), unpacked(total["squares"], size), total["gradient"]
    raw = H[:p, :p]
    if layout.n_intercepts:
        T = np.concatenate([np.eye(p), -H[:p, p:] / H[p, p]], axis=1)  # rows less their weighted mean
        H, M, g = T @ H @ T.T, T @ M @ T.T, T @ g
    return QuadraticModel(flat[:p], H, -g, float(total["loss"]), _varies(H, raw), M)


def _varies(G: Float, raw: Float, center: Float | None = None) -> Array:
    """Whether each column is not constant; clients subtracted ``center`` before computing ``raw``."""
    rounding = FLAT * np.diag(raw)
    if center is not None:
        rounding += np.square(FLAT * center[: len(raw)])
    return np.asarray(np.diag(G) > rounding)


def support(questions: ClientQuestions, flat: Float) -> Array:
    """The non-zero coordinates, and the intercept."""
    return np.flatnonzero((flat != 0.0) | (np.arange(len(flat)) >= questions.problem.layout.n_coefficients))


def refitted(
    questions: ClientQuestions, flat: Float, sites: bool = False
) -> tuple[Float, Array, list[Arrays]]:
    """The maximum likelihood on the support of a flat point, by Newton steps; the support; the last answers.

    The answers are those at the point before the last step, which is smaller than ``SMALL`` standard errors.
    For the squared loss a Newton step is exact, so one round at the given point suffices.
    """
    working = support(questions, flat)
    best, direction, size, before = flat, np.zeros_like(flat), 1.0, math.inf
    for _ in range(REFIT_ROUNDS if working.size else 0):
        trial = best + size * direction
        totals = questions.at(trial, working, sites=sites)
        shares = [float(total["weight"]) for total in totals]
        loss = _mean(totals, shares, "loss")
        if not loss <= before + 1e-10 * abs(before):  # the step was too long, or the loss is NaN there
            size *= 0.5
            continue
        best, before, size = trial, float(loss), 1.0
        g = _mean(totals, shares, "gradient")[working]
        d = -inverse(unpacked(_mean(totals, shares, "hessian"), len(working))) @ g
        direction[working] = d
        length = math.sqrt(questions.data.n_rows * max(-float(g @ d), 0.0))
        # if the classes are separable, the loss flattens while the steps stay large
        near = length <= SMALL and np.abs(d).max() <= STILL * np.abs(best).max()
        if near or questions.problem.problem.loss.is_quadratic:
            return np.asarray(best + direction), working, totals
    if not working.size:
        return flat, working, []
    raise ValueError(
        f"the maximum likelihood on {len(working)} selected columns did not converge in {REFIT_ROUNDS} "
        "rounds: they may separate the classes. Use a larger λ"
    )


def significant(questions: ClientQuestions, flat: Float) -> Float:
    """The maximum likelihood on the support columns at least √(2 log p) standard errors from zero."""
    best, working, totals = refitted(questions, flat)
    p, size = questions.problem.layout.n_coefficients, len(working)
    if not totals or p < 2:
        return best
    variance = np.diag(inverse(unpacked(totals[0]["hessian"], size))) / questions.data.n_rows
    kept = np.abs(best[working]) >= np.sqrt(2.0 * math.log(p) * np.maximum(variance, 0.0))
    dropped = working[~kept & (working < p)]
    if not dropped.size:
        return best
    best[dropped] = 0.0
    return refitted(questions, best)[0]


def inverse(H: Float) -> Float:
    """H⁺, computed after scaling to a unit diagonal; collinear columns share their effect."""
    from scipy import linalg  # slow to import

    scale = np.sqrt(np.where(np.diag(H) > 0.0, np.diag(H), 1.0))
    unit = np.multiply.outer(scale, scale)
    return np.asarray(linalg.pinvh(H / unit, rtol=1e-12) / unit)


def _mean(totals: list[Arrays], shares: list[float], name: str) -> Float:
    """The mean of several answers, weighted by ``shares``."""
    terms = [share * total[name] for share, total in zip(shares, totals, strict=True)]
    return np.asarray(sum(terms[1:], terms[0]) / sum(shares), dtype=np.float64)
