"""One step of a bracketed Newton iteration."""

from __future__ import annotations

from unpooled.kernel import kernel


@kernel
def guarded(newton: float, x: float, low: float, high: float, previous: float) -> float:
    """The next trial for a root in (low, high), from x.

    Newton's point, if it lies inside and its step is at most half the ``previous`` one; else the midpoint. So
    the steps shrink at least as those of a bisection do, whatever the function.
    """
    if low < newton < high and abs(newton - x) <= 0.5 * previous:
        return newton
    return 0.5 * (low + high)
