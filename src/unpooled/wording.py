"""Numbers with their words."""

from __future__ import annotations


def counted(n: int, word: str) -> str:
    """``1 seed``, ``3 seeds``."""
    return f"{n} {word}{'' if n == 1 else 's'}"
