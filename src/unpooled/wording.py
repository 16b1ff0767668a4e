"""Words: numbers with theirs, and those of others made plain."""

from __future__ import annotations

import unicodedata


def counted(n: int, word: str) -> str:
    """``1 seed``, ``3 seeds``."""
    return f"{n} {word}{'' if n == 1 else 's'}"


def printable(text: str, *, lines: bool = False) -> str:
    """A text of others as it may stand on a terminal: what would control it is spelt out (``\\x1b``).

    With ``lines``, ends of lines stay.
    """
    return "".join(each if _is_plain(each) or (lines and each == "\n") else _spelt(each) for each in text)


def _is_plain(letter: str) -> bool:
    return letter.isprintable() or unicodedata.category(letter) == "Zs"


def _spelt(letter: str) -> str:
    return letter.encode("unicode_escape").decode()
