"""Numbers as the report's prose and tables show them, and as its data holds them."""

from __future__ import annotations

import math
from typing import Any

from unpooled._ledger import megabytes

THIN_SPACE = "\u202f"
MINUS = "\u2212"


def whole(count: float) -> str:
    """12 345 with thin spaces."""
    return f"{int(count):,}".replace(",", THIN_SPACE)


def significant(value: float, digits: int = 4) -> str:
    """Four significant digits, with a real minus sign."""
    if not math.isfinite(value):
        return "not finite"
    size = abs(value)
    if size != 0 and not 1e-3 <= size < 1e6:
        mantissa, exponent = f"{value:.{digits - 2}e}".split("e")
        text = f"{mantissa}e{int(exponent)}"
    elif size >= 10 ** (digits - 1):
        text = f"{value:.0f}"
    else:
        text = f"{value:#.{digits}g}" if size else "0"
    return text.replace("-", MINUS)


def percent(fraction: float) -> str:
    """A signed percentage."""
    text = f"{100 * fraction:+.1f}"
    return (text[1:] if float(text) == 0 else text).replace("-", MINUS) + THIN_SPACE + "%"


def size(count: float) -> str:
    """Bytes for people."""
    return megabytes(round(count)).replace(" ", THIN_SPACE)


def duration(seconds: float) -> str:
    """Seconds, minutes or hours."""
    for limit, unit, length in ((120, "s", 1), (7200, "min", 60)):
        if seconds < limit:
            return f"{seconds / length:.{1 if seconds >= 10 * length else 2}f}{THIN_SPACE}{unit}"
    return f"{seconds / 3600:.1f}{THIN_SPACE}h"


def span(values: list[int]) -> str:
    """``2 000``, or ``40 to 2 000`` where they differ."""
    low, high = min(values), max(values)
    return whole(low) if low == high else f"{whole(low)} to {whole(high)}"


def plain(value: Any) -> float | None:
    """Seven digits for the page's data; None, which JSON has, for what is not finite."""
    number = float(value)
    return float(f"{number:.7g}") if math.isfinite(number) else None


def listed(names: list[str]) -> str:
    """``a, b and c``."""
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
