"""Complementary halves of every site's rows."""

from __future__ import annotations

import numpy as np

from unpooled.data.federated import FederatedData
from unpooled.data.folds import Fold, Halved


def halves(data: FederatedData, pairs: int, seed: int) -> list[Fold]:
    """Both halves of every pair. Where a site's rows are odd in number, one is in neither."""
    alone = np.flatnonzero(data.sizes < 2)
    if alone.size:
        raise ValueError(f"client {data.ids[alone[0]]!r} has one row, which has no halves")
    return [Fold(Halved(seed, b), half, held_out=True) for b in range(pairs) for half in (0, 1)]
