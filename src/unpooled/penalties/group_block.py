"""One group of the constrained group prox, given the multiplier.

    w = argmin ½‖w − v‖² + λ‖w‖ + θ‖w − b‖,        b ≠ 0

lies in the plane of b and v. With b along the first axis, b = (B, 0) and v = (v₁, v₂), v₂ ≥ 0, there are
three cases: w = 0 iff ‖v + θ b/B‖ ≤ λ, w = b iff ‖v − b − λ b/B‖ ≤ θ, and else

    w = y − fλ y/‖y‖,   y = (1 − f) b + f v,   where f in (0, 1) solves

    (1 − f) ‖e‖ = θ,    e = v − b − λ y/‖y‖.

The left side falls in f wherever w ≠ 0, and w − b = f e.
"""

from __future__ import annotations

import math

from unpooled.kernels.compile import kernel
from unpooled.kernels.linalg.roots import guarded

ROUNDING = 2.0**-51


@kernel
def toward_center(
    B: float, v1: float, v2: float, lam: float, theta: float
) -> tuple[float, float, float, float]:
    """(x, y, ‖w − b‖, its derivative in θ), where w = x b + y v."""
    if lam > 0.0 and math.sqrt((v1 + theta) ** 2 + v2**2) <= lam:
        return 0.0, 0.0, B, 0.0
    start = math.sqrt((v1 - B - lam) ** 2 + v2**2)
    if start <= theta:
        return 1.0, 0.0, 0.0, 0.0
    if lam == 0.0:
        f = 1.0 - theta / start
        return 1.0 - f, f, f * start, -1.0
    low, high = _ends(B, v1, v2, lam, theta)
    f = 1.0 - theta / start
    if not low < f < high:
        f = 0.5 * (low + high)
    previous = math.inf
    tolerance = ROUNDING * (theta + lam + B + math.sqrt(v1**2 + v2**2))
    for _ in range(100):
        y1, y2 = B + f * (v1 - B), f * v2
        size = math.sqrt(y1**2 + y2**2)
        y1, y2 = y1 / size, y2 / size
        e1, e2 = v1 - B - lam * y1, v2 - lam * y2
        e = math.sqrt(e1**2 + e2**2)
        excess = (1.0 - f) * e - theta
        if abs(excess) <= tolerance:
            break
        if excess > 0.0:
            low = f
        else:
            high = f
        turn = (y1 * v2 - y2 * (v1 - B)) / size  # y/‖y‖ turns at this rate as f grows
        slope = -e + (1.0 - f) * lam * (y2 * e1 - y1 * e2) * turn / e
        trial = guarded(f - excess / slope, f, low, high, previous)
        if not low < trial < high:
            break
        previous = abs(trial - f)
        f = trial
    norm = max(size - f * lam, 0.0)
    cosine, sine = (y1 * e1 + y2 * e2) / e, (y1 * e2 - y2 * e1) / e
    rate = (norm + lam * f * cosine * cosine) / (norm + lam * (f + (1.0 - f) * sine * sine))
    return (1.0 - f) * norm / size, f * norm / size, f * e, -rate


@kernel
def _ends(B: float, v1: float, v2: float, lam: float, theta: float) -> tuple[float, float]:
    """An interval for f on which w ≠ 0.

    Beyond the values of θ that make w = 0, ‖w − b‖ is at most B; before them, it is at least B.
    """
    if v2 < lam:
        half = math.sqrt((lam - v2) * (lam + v2))
        if -v1 + half >= 0.0:
            middle = B / (B + theta)
            if theta > -v1:
                return 0.0, middle
            return middle, 1.0
    return 0.0, 1.0
