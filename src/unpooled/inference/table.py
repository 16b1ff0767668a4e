"""A table of numbers as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Names on the left, numbers on the right, one line a row."""
    cells = [list(head)] + [[entry if isinstance(entry, str) else number(entry) for entry in r] for r in rows]
    widths = [max(len(row[c]) for row in cells) for c in range(len(head))]
    lines = []
    for row in cells:
        first = row[0].ljust(widths[0])
        rest = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join([first, *rest]).rstrip())
    return "\n".join(lines)


def number(value: float) -> str:
    """Four digits; whole numbers as they are."""
    return str(value) if isinstance(value, int) else f"{value:.4g}"
