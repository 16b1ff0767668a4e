"""The graphical lasso for a given covariance matrix, with a duality gap.

    minimise over Θ ≻ 0   P(Θ) = tr(SΘ) − log det Θ + α Σ_{i≠j} |Θ_ij|

    maximise over W ≻ 0   D(W) = log det W + p     with |W_ij − S_ij| ≤ α for i ≠ j, W_ii = S_ii

Columns of W are improved in turn (Friedman, Hastie and Tibshirani 2008): with the others fixed, column j is
W₁₁β for the lasso β = argmin ½βᵀW₁₁β − s_jᵀβ + α‖β‖₁. Every W after a pass is feasible, so that D(W) proves
how far the Θ read from the β is from the optimum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unpooled.exact.certificate import Certificate
from unpooled.exact.quadratic import minimise
from unpooled.exact.shrinkage import Blocks
from unpooled.kernels.arrays import Float

START = 0.95  # of the off-diagonal: W is positive definite for singular S too
PATIENCE = 5  # passes without a smaller gap, after which rounding error dominates


class SparsePrecision(NamedTuple):
    """Θ, W ≈ Θ⁻¹, the certificate, and the number of passes over the columns."""

    precision: Float
    covariance: Float
    certificate: Certificate
    passes: int


def sparse_precision(S: Float, alpha: float, tol: float, max_passes: int) -> SparsePrecision:
    """Minimise until the gap is at most ``tol`` times its scale p or rounding dominates; diag S > 0."""
    p = len(S)
    W = START * S
    W[np.diag_indices(p)] = np.diag(S)
    h = Blocks(np.arange(p - 1), np.full(p - 1, alpha), np.zeros(p - 1))
    betas = np.zeros((p, p - 1))
    best: SparsePrecision | None = None
    worse = 0
    for number in range(1, max_passes + 1):
        for j in range(p if p > 1 else 0):
            rest = np.flatnonzero(np.arange(p) != j)
            inner = W[np.ix_(rest, rest)]
            betas[j] = minimise(inner, S[rest, j], h, betas[j])
            # clipped, so that W stays feasible despite rounding
            W[rest, j] = W[j, rest] = np.clip(inner @ betas[j], S[rest, j] - alpha, S[rest, j] + alpha)
        found = _certified(S, W, betas, alpha, number)
        if best is None or found.certificate.gap < best.certificate.gap or np.isinf(best.certificate.gap):
            best, worse = found, 0
        else:
            worse += 1
        if best.certificate.relative <= tol or worse >= PATIENCE:
            break
    assert best is not None
    return best


def _certified(S: Float, W: Float, betas: Float, alpha: float, passes: int) -> SparsePrecision:
    p = len(S)
    Theta = np.empty((p, p))
    for j in range(p):
        rest = np.flatnonzero(np.arange(p) != j)
        Theta[j, j] = 1.0 / (W[j, j] - W[rest, j] @ betas[j])
        Theta[rest, j] = -betas[j] * Theta[j, j]
    Theta = np.where((Theta == 0.0) | (Theta.T == 0.0), 0.0, 0.5 * (Theta + Theta.T))
    sign, logdet = np.linalg.slogdet(Theta)
    if sign <= 0.0 or np.linalg.eigvalsh(Theta)[0] <= 0.0:
        objective = np.inf
    else:
        off = np.abs(Theta).sum() - np.abs(np.diag(Theta)).sum()
        objective = float(np.sum(S * Theta) - logdet + alpha * off)
    sign, logdet = np.linalg.slogdet(W)
    dual = float(logdet + p) if sign > 0.0 else -np.inf
    gap = max(objective - dual, 0.0)
    return SparsePrecision(
        Theta, W.copy(), Certificate(gap, gap / p, "duality gap", objective, dual, float(p)), passes
    )
