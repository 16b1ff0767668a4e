"""Complementary halves of every site's rows."""

from __future__ import annotations

import numpy as np

from unpooled.data import FederatedData
from unpooled.engines.oracles import Fold
from unpooled.sampling import own_draws


def halves(data: FederatedData, pairs: int, seed: int) -> list[Fold]:
    """Both halves of every pair. Where a site's rows are odd in number, one is in neither."""
    folds = []
    of = np.empty((pairs, data.n_rows), dtype=np.int8)
    for name, start, stop in zip(data.ids, data.offsets[:-1], data.offsets[1:], strict=True):
        draws, n = own_draws(name, seed), int(stop - start)
        if n < 2:
            raise ValueError(f"client {name!r} has one row, which has no halves")
        for b in range(pairs):
            rank = draws.permutation(n)
            of[b, start:stop] = np.where(rank < n // 2, 0, np.where(rank < 2 * (n // 2), 1, 2))
    for b in range(pairs):
        folds += [Fold(of[b], half, held_out=True) for half in (0, 1)]
    return folds
