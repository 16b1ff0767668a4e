"""A client's rows of one round, their features numbered 0, 1, 2, …: the local loop meets no others.

A round's minibatches are known before its first step, and so are their features. The vectors that a client
works on are as long as the list of these features, whatever p is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel
from unpooled.kernels.draws import draw
from unpooled.kernels.rows import SparseRows
from unpooled.losses.base import gradient

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ over the golden ratio: its multiples scatter well


class RoundOracle(NamedTuple):
    """∇f(w; ξ_j) of one client whose minibatches of the round are drawn: row j of ``batches`` holds ξ_j.

    One row serves every step where all rows are taken. A batch without rows has the gradient zero.
    """

    loss: Any
    rows: Any
    batches: Array
    n_outputs: int

    @kernel
    def workspace(self, client: int, w: Array) -> Any:
        """Scratch for the margins."""
        return np.empty((self.batches.shape[1], self.n_outputs), w.dtype)

    @kernel
    def stochastic_gradient(self, client: int, step: int, w: Array, work: Any, G: Array) -> None:
        """G ← the mean gradient at w over this step's minibatch."""
        gradient(self.loss, self.rows, self.batches[step % self.batches.shape[0]], w, work, G)


@kernel
def draw_batches(draws: Any, client: int, n_steps: int) -> Array:
    """The round's minibatches, of the client's rows from 0 on; one for all steps where it has every row."""
    n = draws.offsets[client + 1] - draws.offsets[client]
    b = n if draws.batch_size == 0 else min(n, draws.batch_size)
    if b == n:
        return np.arange(n).reshape((1, n))
    identity, batches = np.arange(n), np.empty((n_steps, b), np.int64)
    for j in range(n_steps):
        draw(draws.seed, j, client, draws.round, identity, batches[j])
    return batches


@kernel
def number_anew(batches: Array, first: int, n: int) -> Array:
    """The rows that the minibatches are made of, first come first; the batches then count these rows.

    The client has n rows; its first is number ``first`` of all.
    """
    number, chosen = np.full(n, -1), np.empty(min(n, batches.size), np.int64)
    count = 0
    for j in range(batches.shape[0]):
        for i in range(batches.shape[1]):
            row = batches[j, i]
            if number[row] < 0:
                number[row] = count
                chosen[count] = first + row
                count += 1
            batches[j, i] = number[row]
    return chosen[:count]


@kernel
def localise(rows: Any, chosen: Array, touched: Array) -> SparseRows:
    """The chosen rows, their features numbered in the order they come; ``touched`` gets the features' names.

    The table is a hash table with linear probing, or, where it has room for every feature, a plain one.
    """
    total = 0
    for row in chosen:
        total += rows.starts[row + 1] - rows.starts[row]
    bits = 4
    while 2**bits < 2 * total and 2**bits < rows.n_columns:
        bits += 1
    is_plain, mask, shift = 2**bits >= rows.n_columns, 2**bits - 1, np.uint64(64 - bits)
    table = np.zeros(2**bits, np.int32)  # 1 + the number of the feature that has this place; 0 for none
    starts, columns = np.empty(chosen.size + 1, np.int64), np.empty(total, np.int32)
    values, y = np.empty(total, rows.values.dtype), np.empty(chosen.size, rows.y.dtype)
    weight = np.empty(chosen.size if rows.weight.size > 0 else 0, rows.weight.dtype)
    at, n_touched = 0, 0
    for i in range(chosen.size):
        row = chosen[i]
        starts[i], y[i] = at, rows.y[row]
        if weight.size > 0:
            weight[i] = rows.weight[row]
        for q in range(rows.starts[row], rows.starts[row + 1]):
            feature = np.int64(rows.columns[q])
            place = feature if is_plain else np.int64((np.uint64(feature) * GOLDEN) >> shift)
            while table[place] > 0 and touched[table[place] - 1] != feature:
                place = (place + 1) & mask
            if table[place] == 0:
                touched[n_touched] = feature
                n_touched += 1
                table[place] = n_touched
            columns[at], values[at] = table[place] - 1, rows.values[q]
            at += 1
    starts[chosen.size] = at
    return SparseRows(values, columns, starts, n_touched, y, weight)


@kernel
def gather(x: Array, feature: Array, n: int, p: int, n_outputs: int, out: Array) -> None:
    """Out ← x on the first n of ``feature``, and its intercepts where out has room for them."""
    for c in range(n_outputs):
        for i in range(n):
            out[c * n + i] = x[c * p + feature[i]]
    for i in range(out.size - n_outputs * n):
        out[n_outputs * n + i] = x[n_outputs * p + i]


@kernel
def no_rows(rows: Any, n_features: int) -> SparseRows:
    """So many features and not one row."""
    starts, columns = np.zeros(1, np.int64), np.empty(0, np.int32)
    values, y = np.empty(0, rows.values.dtype), np.empty(0, rows.y.dtype)
    return SparseRows(values, columns, starts, n_features, y, np.empty(0, rows.weight.dtype))
