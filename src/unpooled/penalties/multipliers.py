"""The exact constrained prox of a penalty that splits into blocks, by its two Lagrange multipliers.

    min ½‖w − v‖² + λR(w)   subject to   R(w − c) ≤ radius,  ‖w‖₂ ≤ ball

With a multiplier for each constraint, and after division by one plus that of the ball, the solution is

    w(s, θ) = argmin ½‖w − s v‖² + sλR(w) + θR(w − c),       0 < s ≤ 1,  θ ≥ 0,

which splits. R(w(s, θ) − c) falls as θ rises, so θ(s) is the root of one equation; ‖w(s, θ(s))‖ grows with
s, so s is the root of another. At s = 0 stands the point of least norm that the radius allows, which
decides whether the feasible set is empty.

A record takes part through one kernel, ``at_multiplier(v, step, center, shrink, theta, out)``: it writes
w(s, θ) and returns R(w − c), its derivative in θ, and ‖w‖². Where R(w − c) = 0 does not mean w = c, a second
one, ``pinned(v, center, shrink, out)``, writes w(s, ∞) and returns ‖w‖.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel, method
from unpooled.kernels.linalg.roots import Bracket, chord, guarded, narrowed
from unpooled.penalties.base import prox

at_multiplier = method("at_multiplier")

ROUNDING = 2.0**-51  # twice the spacing of floats at 1
EMPTY = 1e-12  # relative excess of the least norm over the ball that still counts as touching it


@kernel
def norm2(x: Array) -> float:
    """‖x‖₂, NaN or infinite if an entry is."""
    square = 0.0
    for j in range(x.size):
        square += x[j] * x[j]
    return math.sqrt(square)


@kernel
def at_center(record: Any, v: Array, center: Array, shrink: float, out: Array) -> Any:
    """Write the center; return its norm."""
    for j in range(v.size):
        out[j] = center[j]
    return norm2(center)


pinned = method("pinned", default=at_center)


@kernel
def within_radius(
    record: Any, v: Array, step: float, center: Array, radius: float, shrink: float, guess: float, out: Array
) -> tuple[float, float]:
    """Write w(s, θ(s)); return θ(s) and ‖w‖. The search for θ starts from ``guess``, if that is positive.

    Stops when Newton's step would move w by no more than rounding: |Δw| ≤ |Δθ|·√−slope, because the objective
    is 1-strongly convex.
    """
    distance, slope, square = at_multiplier(record, v, step, center, shrink, 0.0, out)
    if distance <= radius:
        return 0.0, math.sqrt(square)
    if radius == 0.0:
        return 0.0, pinned(record, v, center, shrink, out)
    t = shrink * step * record.lam
    size = shrink * norm2(v) + norm2(center)
    low, high, theta, previous = 0.0, math.inf, 0.0, math.inf
    for _ in range(200):
        excess = distance - radius
        if excess > 0.0:
            low = theta
        else:
            high = theta
        reach = math.sqrt(-slope)
        if abs(excess) <= ROUNDING * reach * (size + reach * (theta + t)):
            break
        newton = theta - excess / slope if slope < 0.0 else math.inf
        if theta == 0.0 and guess > 0.0:
            trial = guess
        elif high == math.inf:  # no upper end yet: go on, at least twice as far, off any plateau
            trial = max(2.0 * low, newton if newton < math.inf else t)
        else:
            trial = guarded(newton, theta, low, high, previous)
        if not low < trial < high:
            break
        previous = abs(trial - theta)
        theta = trial
        distance, slope, square = at_multiplier(record, v, step, center, shrink, theta, out)
    return theta, math.sqrt(square)


@kernel
def solve(record: Any, v: Array, step: float, center: Array, radius: float, ball: float, out: Array) -> None:
    """Write the constrained prox; NaN where the feasible set is empty or a value is not finite."""
    if radius == math.inf and ball == math.inf:
        prox(record, v, step, out)
        return
    if not math.isfinite(norm2(v) + norm2(center)):
        out[:] = np.nan
        return
    theta, norm = within_radius(record, v, step, center, radius, 1.0, 0.0, out)
    if norm <= ball:
        return
    above = norm - ball
    theta, norm = within_radius(record, v, step, center, radius, 0.0, 0.0, out)
    if norm >= ball:  # the least norm is the ball's, or exceeds it
        if not norm <= (1.0 + EMPTY) * ball:
            out[:] = np.nan
        return
    bracket = Bracket(0.0, 1.0, ball - norm, above, 0, 0)
    for _ in range(300):
        shrink = chord(bracket)
        theta, norm = within_radius(record, v, step, center, radius, shrink, theta, out)
        if abs(norm - ball) <= ROUNDING * ball or bracket.high - bracket.low <= ROUNDING * bracket.high:
            break
        bracket = narrowed(bracket, shrink, norm - ball)
    if norm > ball:  # by rounding
        for j in range(v.size):
            out[j] *= ball / norm
