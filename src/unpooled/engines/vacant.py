"""One round of a cohort on dense rows, of which each client leaves some columns vacant: zero in all its rows.

Images have margins, sites lack levels of a category. A coordinate of a vacant column gets no gradient: it
moves by an increment that is the same at every client where the column is vacant, found by the same local
loop on no rows; and where w_j = 0, it stays. So a client works on the columns that it occupies, on a copy of
its rows without the others. Uploads are whole, whoever else is in the cohort.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numba import prange

from unpooled.algorithms.base import local_loop
from unpooled.arrays import Array
from unpooled.engines.cohort import all_sound
from unpooled.engines.touched import gather
from unpooled.kernel import compiled, kernel
from unpooled.localise import RoundOracle, draw_batches
from unpooled.regulariser import Entrywise, Regulariser
from unpooled.rows import DenseRows

if TYPE_CHECKING:
    from unpooled.data import FederatedData

SAMPLE = 32  # clients that are looked at first
WORTHWHILE = 0.85  # of the columns; clients that occupy more gain little from leaving the others out
MOST_BYTES = 2**30  # of copies
IDLE = 256  # columns that go through the loop on no rows at a time


class Occupied(NamedTuple):
    """The clients' rows without their vacant columns.

    Client k occupies the columns ``feature[first[k] : first[k + 1]]``; its rows of them, one after the other,
    start at ``entries[start[k]]``.
    """

    first: Array
    feature: Array
    start: Array
    entries: Array


_found: WeakKeyDictionary[FederatedData, Occupied | None] = WeakKeyDictionary()


def occupied_of(data: FederatedData) -> Occupied | None:
    """``occupied`` rows of dense data, found once and kept as long as the data are."""
    if data not in _found:
        _found[data] = occupied(np.asarray(data.X).reshape(data.n_rows, -1), data.offsets)
    return _found[data]


def occupied(X: Array, offsets: Array) -> Occupied | None:
    """The rows without what the clients leave vacant; None where that is little, or too much to copy."""
    if isinstance(X, np.memmap) or isinstance(X.base, np.memmap):
        return None
    clients = np.arange(len(offsets) - 1)
    for chosen in (clients[:: max(1, len(clients) // SAMPLE)], clients):
        columns = [np.flatnonzero((X[slice(*offsets[k : k + 2])] != 0).any(axis=0)) for k in chosen]
        counts = np.array([len(own) for own in columns])
        if counts.mean() > WORTHWHILE * X.shape[1]:
            return None
    start = np.concatenate([[0], np.cumsum(counts * np.diff(offsets))])
    if start[-1] * X.itemsize > MOST_BYTES:
        return None
    entries = np.empty(start[-1], X.dtype)
    for k in clients:
        rows = X[offsets[k] : offsets[k + 1]]
        copy = entries[start[k] : start[k + 1]].reshape(len(rows), counts[k])
        np.take(rows, columns[k], axis=1, out=copy, mode="clip")
    return Occupied(np.concatenate([[0], np.cumsum(counts)]), np.concatenate(columns), start, entries)


class Parts(NamedTuple):
    """What is run side by side: the clients of ``cohort``, or, where there are none, blocks of ``idle``.

    ``still`` is the upload of a client that occupies nothing. It is filled first, from the idle columns, and
    then the clients' uploads ``up``, which agree with it on the columns that are vacant.
    """

    cohort: Array
    idle: Array
    still: Array
    up: Array
    sound: Array


def run_occupied(
    plan: Any,
    loss: Any,
    rows: Any,
    draws: Any,
    penalty: Any,
    n_steps: int,
    own: Any,
    down: Array,
    parts: Any,
) -> None:
    """Fill the clients' uploads, or the one on no rows, in parallel."""
    n_parts = parts.cohort.size
    if n_parts == 0:
        n_parts = (parts.idle.size + IDLE - 1) // IDLE
    for s in prange(n_parts):
        run_part(plan, loss, rows, draws, penalty, n_steps, own, down, parts, s)


@kernel
def run_part(
    plan: Any,
    loss: Any,
    rows: Any,
    draws: Any,
    penalty: Any,
    n_steps: int,
    own: Any,
    down: Array,
    parts: Any,
    s: int,
) -> None:
    """A client's round on the columns that it occupies, or a block of idle columns on no rows."""
    n_outputs, p = draws.n_outputs, rows.X.shape[1]
    n_intercepts = down.shape[1] - n_outputs * p
    if parts.cohort.size > 0:
        client, out = parts.cohort[s], parts.up[s]
        for row in range(out.shape[0]):
            for q in range(out.shape[1]):
                out[row, q] = parts.still[row, q]
        feature = own.feature[own.first[client] : own.first[client + 1]]
        batches = draw_batches(draws, client, n_steps)
        local = occupied_rows(own, rows, draws.offsets, client)
    else:
        client, out, n_intercepts = -1, parts.still, 0
        feature = parts.idle[s * IDLE : (s + 1) * IDLE]
        batches, local = np.empty((1, 0), np.int64), no_rows(rows, feature.size)
    n = feature.size
    point = np.empty((down.shape[0], n_outputs * n + n_intercepts), down.dtype)
    for row in range(down.shape[0]):
        gather(down[row], feature, n, p, n_outputs, point[row])
    up = np.empty((out.shape[0], point.shape[1]), out.dtype)
    oracle = RoundOracle(loss, local, batches, n_outputs)
    regulariser = Regulariser(penalty, Entrywise(n_outputs * n))
    local_loop(plan, oracle, regulariser, client, point, np.empty((0, 0), down.dtype), up)
    for row in range(out.shape[0]):
        scatter(up[row], feature, n, p, n_outputs, out[row])
    parts.sound[s] = all_sound(up)


@kernel
def occupied_rows(own: Any, rows: Any, offsets: Array, client: int) -> DenseRows:
    """The client's rows without its vacant columns."""
    first, stop = offsets[client], offsets[client + 1]
    shape = stop - first, own.first[client + 1] - own.first[client]
    weight = rows.weight[first:stop] if rows.weight.size > 0 else rows.weight
    X = own.entries[own.start[client] : own.start[client + 1]].reshape(shape)
    return DenseRows(X, rows.y[first:stop], weight)


@kernel
def no_rows(rows: Any, n_columns: int) -> DenseRows:
    """So many columns and not one row."""
    return DenseRows(np.empty((0, n_columns), rows.X.dtype), rows.y[:0], rows.weight[:0])


@kernel
def scatter(x: Array, feature: Array, n: int, p: int, n_outputs: int, out: Array) -> None:
    """Out on ``feature``, and on its intercepts where x has some, ← x: the reverse of ``gather``."""
    for c in range(n_outputs):
        for i in range(n):
            out[c * p + feature[i]] = x[c * n + i]
    for i in range(x.size - n_outputs * n):
        out[n_outputs * p + i] = x[n_outputs * n + i]


@functools.cache
def compiled_occupied(*foreign: type) -> Any:
    """``run_occupied``, cached on disk apart for each set of a user's own types of records."""
    return compiled(run_occupied, foreign, parallel=True)
