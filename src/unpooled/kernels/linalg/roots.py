"""One step of two bracketed root searches: Newton's where there is a derivative, regula falsi where not."""

from __future__ import annotations

from typing import NamedTuple

from unpooled.kernels.compile import kernel


@kernel
def guarded(newton: float, x: float, low: float, high: float, previous: float) -> float:
    """The next trial for a root in (low, high), from x.

    Newton's point, if it lies inside and its step is at most half the ``previous`` one; else the midpoint. So
    the steps shrink at least as those of a bisection do, whatever the function.
    """
    if low < newton < high and abs(newton - x) <= 0.5 * previous:
        return newton
    return 0.5 * (low + high)


class Bracket(NamedTuple):
    """An increasing function is −below at ``low`` and ``above`` at ``high``, up to the Illinois weights."""

    low: float
    high: float
    below: float
    above: float
    moved: int  # which end moved last: −1 the lower, 1 the upper
    steps: int


@kernel
def narrowed(bracket: Bracket, x: float, value: float) -> Bracket:
    """The bracket after the function came out as ``value`` at x.

    An end that stays for the second time counts half (the Illinois rule), so that both ends close in.
    """
    low, high, below, above, moved, steps = bracket
    if value > 0.0:
        return Bracket(low, x, below * (0.5 if moved == 1 else 1.0), value, 1, steps + 1)
    return Bracket(x, high, -value, above * (0.5 if moved == -1 else 1.0), -1, steps + 1)


@kernel
def chord(bracket: Bracket) -> float:
    """Where the chord between the two ends is zero; every third time their midpoint, for steep functions."""
    low, high, below, above, _, steps = bracket
    x = low + (high - low) * (below / (below + above))
    return x if low < x < high and steps % 3 != 2 else 0.5 * (low + high)
