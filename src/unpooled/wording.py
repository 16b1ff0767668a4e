"""Numbers with their words."""

from __future__ import annotations


def counted(n: int, word: str) -> str:
    """``1 seed``, ``3 seeds``."""
    return f"{n} {word}{'' if n == 1 else 's'}"


def part_of(n: int, total: int, word: str, one: str = "is", many: str = "are") -> str:
    """``1 of 3 columns is``, ``2 of 3 columns are``: some of all, and the verb that goes with them."""
    return f"{n} of {counted(total, word)} {one if n == 1 else many}"


def numbered(n: int, one: str, many: str) -> str:
    """``1 column is constant``, ``3 columns are constant``: where the words behind the number change too."""
    return f"{n} {one if n == 1 else many}"
