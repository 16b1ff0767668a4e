"""The weighted sum of uploads on all threads; imported only for large sums, as it imports numba."""

from __future__ import annotations

import functools
from typing import Any

from numba import prange

from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import compiled
from unpooled.kernels.weighted_sum import add_piece, n_pieces


def add_in_parallel(mean: Array, weights: Array, up: Array) -> None:
    """mean ← mean + Σ_s weights[s] up[s], piece by piece (see ``weighted_sum``)."""
    for k in prange(n_pieces(mean)):
        add_piece(mean, weights, up, k)


@functools.cache
def compiled_sum() -> Any:
    """``add_in_parallel``, cached on disk."""
    return compiled(add_in_parallel, parallel=True)
