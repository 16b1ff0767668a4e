"""A row of the table: something measured, its target if it has one, and whether that was met."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """What a value has to reach: at least or at most ``bound``."""

    bound: float
    at_least: bool = True

    def met_by(self, value: float) -> bool:
        """Whether the value reaches the target; NaN never does."""
        return value >= self.bound if self.at_least else value <= self.bound


@dataclass(frozen=True)
class Row:
    """One measurement. ``value`` is None where nothing could be measured, and ``detail`` says why."""

    section: str
    name: str
    value: float | None
    unit: str  # "×", "%", "s", "yes/no", or none
    target: Target | None = None
    detail: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target was met; None without a target or a value."""
        if self.target is None or self.value is None:
            return None
        return self.target.met_by(self.value)

    @property
    def shown_value(self) -> str:
        """The value as the table shows it."""
        return "–" if self.value is None else shown(self.value, self.unit)

    @property
    def shown_target(self) -> str:
        """The target as the table shows it."""
        if self.target is None:
            return ""
        if self.unit == "yes/no":
            return shown(self.target.bound, self.unit)
        return f"{'≥' if self.target.at_least else '≤'} {shown(self.target.bound, self.unit)}"

    @property
    def verdict(self) -> str:
        """``met`` as a word."""
        return {None: "", True: "met", False: "missed"}[self.met]


def shown(value: float, unit: str) -> str:
    """A number with its unit, in three significant digits."""
    if unit == "yes/no":
        return "yes" if value else "no"
    if unit == "%":
        return f"{100 * value:.0f} %"
    if not math.isfinite(value) or value == 0:
        number = f"{value:g}"
    elif 1e-2 <= abs(value) < 1e4:
        number = f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"
    else:
        number = f"{value:.1e}"
    return f"{number}{'' if unit in ('', '×') else ' '}{unit}"
