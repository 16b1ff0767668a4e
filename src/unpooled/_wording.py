"""Text for messages: counts with their nouns, tables, and untrusted text made printable."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any


def counted(n: int, word: str) -> str:
    """``1 seed``, ``3 seeds``."""
    return f"{n} {word}{'' if n == 1 else 's'}"


def joined(names: Sequence[str], most: int = 5) -> str:
    """``a``, ``a and b``, ``a, b and c``; of a long list the first and how many more there are."""
    parts = list(names[:most]) + ([f"{len(names) - most} more"] if len(names) > most else [])
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def part_of(n: int, total: int, word: str, one: str = "is", many: str = "are") -> str:
    """``1 of 3 columns is``, ``2 of 3 columns are``: some of all, and the verb that goes with them."""
    return f"{n} of {counted(total, word)} {one if n == 1 else many}"


def numbered(n: int, one: str, many: str) -> str:
    """``1 column is constant``, ``3 columns are constant``: where the words behind the number change too."""
    return f"{n} {one if n == 1 else many}"


def printable(text: str, *, lines: bool = False) -> str:
    """A text of others as it may stand on a terminal: what would control it is spelt out (``\\x1b``).

    With ``lines``, ends of lines stay.
    """
    return "".join(each if _is_plain(each) or (lines and each == "\n") else _spelt(each) for each in text)


def escaped(text: str, *, lines: bool = False) -> str:
    """``printable``, and without meaning to rich."""
    from rich.markup import escape

    return escape(printable(text, lines=lines))


def _is_plain(letter: str) -> bool:
    return letter.isprintable() or unicodedata.category(letter) == "Zs"


def _spelt(letter: str) -> str:
    return letter.encode("unicode_escape").decode()


def text_table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A plain-text table: the first column left-aligned, the others right-aligned."""
    cells = [list(head)] + [
        [entry if isinstance(entry, str) else _four_digits(entry) for entry in r] for r in rows
    ]
    widths = [max(len(row[c]) for row in cells) for c in range(len(head))]
    lines = []
    for row in cells:
        first = row[0].ljust(widths[0])
        rest = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join([first, *rest]).rstrip())
    return "\n".join(lines)


def _four_digits(value: float) -> str:
    """Four significant digits; integers in full."""
    return str(value) if isinstance(value, int) else f"{value:.4g}"
