"""The weighted sum of uploads, in client order: the bits depend neither on threads nor on batching."""

from __future__ import annotations

import functools
from typing import Any

from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import in_order, kernel

PIECE = 4096  # coordinates per piece: a piece of the sum stays in cache while uploads stream through
HUGE = 1e100  # an upload beyond this is diverging
LARGE = 2**18  # total numbers from which several threads are used


def add_weighted(mean: Array, weights: Array, up: Array) -> None:
    """mean ← mean + Σ_s weights[s] up[s]."""
    if up.size < LARGE:
        compiled_here()(mean, weights, up)
        return
    from unpooled.kernels.parallel_sum import compiled_sum

    compiled_sum()(mean, weights, up)


@kernel
def add_here(mean: Array, weights: Array, up: Array) -> None:
    """Add all pieces on one thread."""
    for k in range(n_pieces(mean)):
        add_piece(mean, weights, up, k)


@functools.cache
def compiled_here() -> Any:
    """The compiled ``add_here``, cached."""
    return add_here.dispatcher()


@kernel
def n_pieces(mean: Array) -> Any:
    """The number of pieces of all vectors."""
    return mean.shape[0] * ((mean.shape[1] + PIECE - 1) // PIECE)


@kernel
def add_piece(mean: Array, weights: Array, up: Array, k: int) -> None:
    """Add piece k, four clients at a time to overlap their memory reads."""
    i, first = k % mean.shape[0], k // mean.shape[0] * PIECE
    stop, fours = first + PIECE, weights.size - weights.size % 4
    for s in range(0, fours, 4):
        x0, x1 = up[s, i, first:stop], up[s + 1, i, first:stop]
        x2, x3 = up[s + 2, i, first:stop], up[s + 3, i, first:stop]
        add_four(mean[i, first:stop], weights[s : s + 4], x0, x1, x2, x3)
    for s in range(fours, weights.size):
        add_one(mean[i, first:stop], weights[s], up[s, i, first:stop])


@in_order
def add_four(out: Array, weights: Array, x0: Array, x1: Array, x2: Array, x3: Array) -> None:
    """Out ← out + Σ_s weights[s] x_s."""
    w0, w1, w2, w3 = weights[0], weights[1], weights[2], weights[3]
    for q in range(out.size):
        out[q] = out[q] + w0 * x0[q] + w1 * x1[q] + w2 * x2[q] + w3 * x3[q]


@in_order
def add_one(out: Array, weight: float, x: Array) -> None:
    """Out ← out + weight · x."""
    for q in range(out.size):
        out[q] += weight * x[q]


@kernel
def all_sound(up: Array) -> bool:
    """Whether every number is below ``HUGE`` in size (NaN fails the comparison).

    The loop has no early exit, so that it vectorises.
    """
    unsound = 0
    for i in range(up.shape[0]):
        for q in range(up.shape[1]):
            unsound += not abs(up[i, q]) < HUGE
    return unsound == 0


@kernel
def add_rows(total: Array, weights: Array, rows: Array) -> None:
    """total ← total + Σ_s weights[s] rows[s], in order."""
    for s in range(weights.size):
        for q in range(total.size):
            total[q] += weights[s] * rows[s, q]
