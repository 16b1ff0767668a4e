"""Steps of two bracketed root searches: Newton's method with a derivative, regula falsi without."""

from __future__ import annotations

from typing import NamedTuple

from unpooled.kernels.compile import kernel


@kernel
def guarded(newton: float, x: float, low: float, high: float, previous: float) -> float:
    """The next trial for a root in (low, high), from x.

    Newton's point if it lies inside and its step is at most half the ``previous`` one, otherwise the
    midpoint. The steps therefore shrink at least as fast as in bisection, for any function.
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
    """The bracket updated with the function's ``value`` at x.

    The value at an end that stays for the second time is halved (the Illinois rule), so that both ends move.
    """
    low, high, below, above, moved, steps = bracket
    if value > 0.0:
        return Bracket(low, x, below * (0.5 if moved == 1 else 1.0), value, 1, steps + 1)
    return Bracket(x, high, -value, above * (0.5 if moved == -1 else 1.0), -1, steps + 1)


@kernel
def chord(bracket: Bracket) -> float:
    """The zero of the chord between the two ends; every third time the midpoint, for steep functions."""
    low, high, below, above, _, steps = bracket
    x = low + (high - low) * (below / (below + above))
    return x if low < x < high and steps % 3 != 2 else 0.5 * (low + high)
