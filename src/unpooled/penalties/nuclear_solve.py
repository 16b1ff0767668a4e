"""The constrained prox of the nuclear norm: which of its constraints are active, and what they cost.

    min ½‖W − V‖² + λ‖W‖_*   subject to   ‖W − W₀‖_* ≤ ε,  ‖W‖_F ≤ ball

Most calls end after one or two SVDs: the plain prox, clipped to the ball, satisfies the radius. Else, as in
``multipliers``, W(s) solves the problem of (s V, s λ) without the ball; ‖W(s)‖ grows with s, and s is 1 or
makes it the ball's. With gap(s) the certificate of that problem (``nuclear_ball``),

    gap(s)/s + (1/s − 1)/2·(ball² − ‖W‖²)  ≥  ½‖W − W*‖²   for every feasible W.
"""

from __future__ import annotations

import math

import numpy as np

from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel
from unpooled.kernels.linalg.roots import Bracket, chord, narrowed
from unpooled.kernels.linalg.singular_values import nuclear_norm, shrunk
from unpooled.kernels.outlined import outlined
from unpooled.penalties.multipliers import EMPTY, norm2
from unpooled.penalties.nuclear_ball import certified_gap, first_multiplier, in_radius

BALL = 1e-14  # relative distance of ‖W‖ from the ball at which to stop


@outlined("Tuple((f8, i8))(f8[::1], f8, f8[::1], f8, f8, i8, i8, f8[::1])")
def solve_nuclear(
    v: Array, lam: float, center: Array, radius: float, ball: float, rows: int, columns: int, W: Array
) -> tuple[float, int]:
    """Write the constrained prox W; return a bound on ½‖W − W*‖² and the number of SVDs.

    Fills W with NaN where the feasible set is empty or a value is not finite.
    """
    n, size = v.size, max(norm2(v), norm2(center))
    if not math.isfinite(size):
        return filled(W, math.nan), 0
    X, V, Y, inside = np.empty(n), np.empty(n), np.zeros(n), np.empty(n)
    shrunk(v, rows, columns, lam, math.inf, X)
    clip = ball / norm2(X) if norm2(X) > ball else 1.0
    if scaled_distance(X, clip, center, radius, rows, columns, W) <= radius:
        return 0.0, 2
    if radius == 0.0:
        for j in range(n):
            W[j] = center[j]
        return (0.0 if norm2(W) <= (1.0 + EMPTY) * ball else filled(W, math.nan)), 2
    zero_center, kappa, svds, s = norm2(center) == 0.0, 0.0, 2, 1.0
    bracket = Bracket(0.0, 1.0, 0.0, 0.0, 0, 0)
    for step in range(100):
        for j in range(n):
            V[j] = s * v[j]
        svds += 1
        if scaled_distance(X, s, center, radius, rows, columns, W) <= radius:
            kappa = filled(Y, 0.0)
        elif zero_center:  # W(s) has the singular vectors of V
            shrunk(V, rows, columns, s * lam, radius, W)
        else:
            if kappa == 0.0:
                first_multiplier(V, s * lam, center, radius, rows, columns, size, Y)
            kappa, more = in_radius(V, s * lam, center, radius, rows, columns, size, Y, W)
            svds += more
        excess = norm2(W) - ball
        if step == 0:
            if excess <= 0.0:
                break
            for j in range(n):
                V[j] = -center[j]
            shrunk(V, rows, columns, 0.0, radius, inside)
            for j in range(n):
                inside[j] += center[j]  # W(0), the feasible point of least norm
            slack = ball - norm2(inside)
            if slack <= 0.0:
                for j in range(n):
                    W[j] = inside[j]
                return (0.0 if -slack <= EMPTY * ball else filled(W, math.nan)), svds
            bracket = Bracket(0.0, 1.0, slack, excess, 0, 0)
        elif abs(excess) <= BALL * ball or bracket.high - bracket.low <= BALL * bracket.high:
            break
        else:
            bracket = narrowed(bracket, s, excess)
        trial = chord(bracket)
        for j in range(n):
            Y[j] *= trial / s
        s = trial
    if s < 1.0:
        pull_inside(W, inside, ball)
    if zero_center:
        return 0.0, svds
    for j in range(n):
        V[j] = s * v[j]
    gap = certified_gap(V, s * lam, center, radius, rows, columns, Y, kappa, W) / s
    if s < 1.0:
        gap += 0.5 * (1.0 / s - 1.0) * max(ball**2 - norm2(W) ** 2, 0.0)
    return gap, svds + 4


@kernel
def filled(x: Array, value: float) -> float:
    """Set every entry to ``value`` and return it."""
    for j in range(x.size):
        x[j] = value
    return value


@kernel
def scaled_distance(
    X: Array, s: float, center: Array, radius: float, rows: int, columns: int, W: Array
) -> float:
    """Write W = s X; return ‖W − W₀‖_*, or a bound on it that is below the radius."""
    D = np.empty(X.size)
    for j in range(X.size):
        W[j] = s * X[j]
        D[j] = W[j] - center[j]
    bound = math.sqrt(min(rows, columns)) * norm2(D)
    if bound <= radius:
        return float(bound)
    return float(nuclear_norm(D, rows, columns))


@kernel
def pull_inside(Z: Array, inside: Array, ball: float) -> None:
    """Move Z towards ``inside`` until it meets the Frobenius ball; it stays within the radius."""
    zz, zd, dd = 0.0, 0.0, 0.0
    for j in range(Z.size):
        d = inside[j] - Z[j]
        zz += Z[j] * Z[j]
        zd += Z[j] * d
        dd += d * d
    excess = zz - ball * ball
    if excess <= 0.0 or dd == 0.0:
        return
    # The smaller root of ‖Z‖² + 2t⟨Z, d⟩ + t²‖d‖² = ball², in the form that does not cancel.
    t = min(excess / (-zd + math.sqrt(max(zd * zd - dd * excess, 0.0))), 1.0)
    for j in range(Z.size):
        Z[j] += t * (inside[j] - Z[j])
