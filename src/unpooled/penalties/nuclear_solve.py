"""The constrained prox of the nuclear norm: which of its constraints are active, and what they cost.

    min ½‖W − V‖² + λ‖W‖_*   subject to   ‖W − W₀‖_* ≤ ε,  ‖W‖_F ≤ ball

Most calls end after one or two SVDs: the plain prox, clipped to the ball, satisfies the radius. Where both
constraints are active, the ball's multiplier is found as in ``multipliers``: W(s) solves the problem of
(s V, s λ) without the ball, and ‖W(s)‖ grows with s. With gap(s) the certificate of that problem,

    gap(s)/s + (1/s − 1)/2·(ball² − ‖W‖²)  ≥  ½‖W − W*‖²   for every feasible W.
"""

from __future__ import annotations

import math

import numpy as np

from unpooled.arrays import Array
from unpooled.kernel import kernel
from unpooled.penalties.base import constrained_prox
from unpooled.penalties.l1 import L1Record
from unpooled.penalties.multipliers import EMPTY, norm2
from unpooled.penalties.nuclear_ball import (
    certified_gap,
    composed,
    first_multiplier,
    in_radius,
    nuclear_norm,
    projected,
    svt,
    thin_svd,
)

BALL = 1e-14  # relative distance of ‖W‖ from the ball at which to stop


@kernel
def solve_nuclear(
    v: Array, lam: float, center: Array, radius: float, ball: float, rows: int, columns: int, out: Array
) -> tuple[float, int]:
    """Write the constrained prox; return a bound on ½‖W − W*‖² and the number of SVDs.

    Fills ``out`` with NaN where the feasible set is empty or a value is not finite.
    """
    size = max(norm2(v), norm2(center))
    if not math.isfinite(size):
        out[:] = np.nan
        return math.nan, 0
    V, W0 = np.empty((rows, columns)), np.empty((rows, columns))
    V.reshape(-1)[:] = v
    W0.reshape(-1)[:] = center
    if norm2(center) == 0.0:  # W has the singular vectors of V: the ℓ1 problem of the singular values
        left, sigma, right = thin_svd(V)
        shrunk = np.empty_like(sigma)
        constrained_prox(L1Record(lam), sigma, 1.0, np.zeros_like(sigma), radius, ball, shrunk)
        out[:] = composed(left, shrunk, right).reshape(-1)
        return 0.0, 1
    X = svt(V, lam)
    norm = norm2(X.reshape(-1))
    clipped = X * (ball / norm) if norm > ball else X
    svds = 1
    if radius < math.inf and math.sqrt(min(rows, columns)) * norm2((clipped - W0).reshape(-1)) > radius:
        svds = 2
        if nuclear_norm(clipped - W0) > radius:
            Z, gap, more = radius_active(V, lam, W0, radius, ball, X, size)
            out[:] = Z.reshape(-1)
            return gap, svds + more
    out[:] = clipped.reshape(-1)
    return 0.0, svds


@kernel
def radius_active(
    V: Array, lam: float, W0: Array, radius: float, ball: float, X: Array, size: float
) -> tuple[Array, float, int]:
    """(W, its certified gap, number of SVDs), where W₀ ≠ 0 and the radius is active; X = SVT(V, λ)."""
    if radius == 0.0:
        Z = W0 if norm2(W0.reshape(-1)) <= (1.0 + EMPTY) * ball else np.full_like(W0, np.nan)
        return Z, 0.0, 0
    Z, Y, kappa, svds = at_shrink(1.0, V, lam, W0, radius, X, first_multiplier(V, lam, W0, radius), size)
    svds += 4
    above = norm2(Z.reshape(-1)) - ball
    if above <= 0.0:
        return Z, certified_gap(V, lam, W0, radius, Y, kappa, Z), svds
    inside = W0 + projected(-W0, radius)[0]  # the feasible point of least norm, W(0)
    below = ball - norm2(inside.reshape(-1))
    if below <= 0.0:
        return (inside if -below <= EMPTY * ball else np.full_like(W0, np.nan)), 0.0, svds + 1
    low, high, shrink, kept = 0.0, 1.0, 1.0, 0
    for _ in range(60):  # regula falsi, with the Illinois rule
        trial = low + (high - low) * (below / (below + above))
        if not low < trial < high:
            break
        Z, Y, kappa, more = at_shrink(trial, V, lam, W0, radius, X, (trial / shrink) * Y, size)
        svds += more
        shrink = trial
        excess = norm2(Z.reshape(-1)) - ball
        if abs(excess) <= BALL * ball or high - low <= BALL * high:
            break
        if excess > 0.0:
            high, above = shrink, excess
            below *= 0.5 if kept == 1 else 1.0
            kept = 1
        else:
            low, below = shrink, -excess
            above *= 0.5 if kept == -1 else 1.0
            kept = -1
    Z = pulled_inside(Z, inside, ball)
    gap = certified_gap(shrink * V, shrink * lam, W0, radius, Y, kappa, Z) / shrink
    slack = max(ball * ball - norm2(Z.reshape(-1)) ** 2, 0.0)
    return Z, gap + 0.5 * (1.0 / shrink - 1.0) * slack, svds


@kernel
def at_shrink(
    shrink: float, V: Array, lam: float, W0: Array, radius: float, X: Array, Y: Array, size: float
) -> tuple[Array, Array, float, int]:
    """(W(s), Y, ‖Y‖_op, number of SVDs); without the radius W(s) would be s X."""
    if nuclear_norm(shrink * X - W0) <= radius:
        return shrink * X, np.zeros_like(Y), 0.0, 1
    Z, Y, kappa, svds = in_radius(shrink * V, shrink * lam, W0, radius, Y, size)
    return Z, Y, kappa, svds + 1


@kernel
def pulled_inside(Z: Array, inside: Array, ball: float) -> Array:
    """The first point in the Frobenius ball on the way from Z to ``inside``; it stays within the radius."""
    zz, zd, dd = 0.0, 0.0, 0.0
    for i in range(Z.shape[0]):
        for j in range(Z.shape[1]):
            d = inside[i, j] - Z[i, j]
            zz += Z[i, j] * Z[i, j]
            zd += Z[i, j] * d
            dd += d * d
    excess = zz - ball * ball
    if excess <= 0.0 or dd == 0.0:
        return Z
    # The smaller root of ‖Z‖² + 2t⟨Z, d⟩ + t²‖d‖² = ball², in the form that does not cancel.
    t = excess / (-zd + math.sqrt(max(zd * zd - dd * excess, 0.0)))
    return Z + min(max(t, 0.0), 1.0) * (inside - Z)
