"""Which clients kept their matrices back: each counts once, in however many fits or folds it did.

Answers are sums, so a server learns how many clients refused each question, not which. Those with too few
rows it works out, since it knows the sizes and how rows are dealt. Of those with rare values it knows the
largest number in one question: there are as many at least.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unpooled.data.base import Data
from unpooled.data.folds import BySite, Fold, Halved
from unpooled.exact.base import reasons
from unpooled.kernels.arrays import Array


class Asked(NamedTuple):
    """The rows that a question was about, and how many clients ``refused`` it: few rows, rare values."""

    fold: Fold | None
    refused: Array


def why(asked: Sequence[Asked], clients: Data, least: int) -> str:
    """Why clients refused, in words, with the number of distinct ones over all questions."""
    few = np.zeros(len(clients.ids), dtype=bool)
    for each in asked:
        n = _rows(each.fold, clients)
        few |= (n > 0) & (n < least)
    counts = np.array([each.refused for each in asked])
    rows = max(int(few.sum()), int(counts[:, 0].max()))
    most, total = int(counts[:, 1].max()), int(counts[:, 1].sum())
    by_site = all(each.fold is None or isinstance(each.fold.folds, BySite) for each in asked)
    if by_site and all(each.fold is not None and each.fold.held_out for each in asked):
        most = total  # each client was asked once
    is_exact = by_site or most == min(total, len(few))
    said = reasons(np.array([rows, most]), len(few), least, at_least=not is_exact)
    return said + _where(asked)


def _rows(fold: Fold | None, clients: Data) -> Array:
    """How many rows of each client a question was about."""
    if fold is None:
        return clients.sizes
    if isinstance(fold.folds, Halved):
        return clients.sizes // 2
    sizes = clients.sizes.tolist()
    dealt = [fold.folds.of(k, name, sizes[k]) for k, name in enumerate(clients.ids)]
    return np.array([np.count_nonzero((own == fold.number) == fold.held_out) for own in dealt])


def _where(asked: Sequence[Asked]) -> str:
    folds = [each.fold for each in asked if each.fold and not isinstance(each.fold.folds, BySite)]
    if not folds:
        return ""
    if isinstance(folds[0].folds, Halved):
        return " in a half"
    return " in a fold" if folds[0].held_out else " when a fold is left out"
