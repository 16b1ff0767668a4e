"""Numbers with their words."""

from __future__ import annotations

from collections.abc import Sequence


def counted(n: int, word: str) -> str:
    """``1 seed``, ``3 seeds``."""
    return f"{n} {word}{'' if n == 1 else 's'}"


def joined(names: Sequence[str], most: int = 5) -> str:
    """``a``, ``a and b``, ``a, b and c``; of a long list the first and how many more there are."""
    parts = list(names[:most]) + ([f"{len(names) - most} more"] if len(names) > most else [])
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
