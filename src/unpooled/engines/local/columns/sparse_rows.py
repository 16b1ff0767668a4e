"""One round of a cohort on sparse rows: a client works on, and uploads, the features of its minibatches.

See ``columns`` for why the others need no work. The server's vectors go down whole. An upload names the
features it has, and so reveals which ones the client's minibatches had; where that must stay private, give
dense rows.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numba import prange

from unpooled._ledger import Traffic
from unpooled.aggregation.base import Aggregate, Mean
from unpooled.algorithms.base import local_loop
from unpooled.engines.local.columns.local_numbering import (
    RoundOracle,
    draw_batches,
    gather,
    localise,
    no_rows,
    number_anew,
)
from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import compiled, kernel
from unpooled.kernels.layout import Layout
from unpooled.kernels.weighted_sum import all_sound
from unpooled.penalties.regulariser import Entrywise, Regulariser

IDLE = 4096  # coordinates that no client touches go through the loop so many at a time


class Uploads(NamedTuple):
    """Sparse uploads, one of each client of ``cohort``, then one of each block of ``idle`` features.

    Upload s has the places from ``first[s]`` to ``first[s + 1]`` of ``feature`` for the features it touches
    and uses the first ``used[s]`` of them. Its numbers start in column C·first[s] + n_intercepts·s of
    ``values``, which has a row for each vector sent: output by output, then the intercepts.
    """

    cohort: Array
    idle: Array
    first: Array
    used: Array
    feature: Array
    values: Array
    sound: Array

    def base(self, layout: Layout) -> Array:
        """The increments of coordinates that a client does not touch: those of the ``idle`` features."""
        base = np.zeros((len(self.values), layout.size))
        idle_increments(base, self, layout.n_coefficients // layout.n_outputs, layout.n_outputs)
        return base


class SparseSum:
    """What a round's sparse uploads come to, taken in part by part: ``mean``, and what was ``sent``.

    A mean needs only what clients touched. Any other aggregate sees uploads filled up to the flat vector.
    """

    def __init__(
        self, aggregate: Aggregate, base: Array, weights: Array, layout: Layout, dtype: np.dtype[Any]
    ):
        self.aggregate, self.base, self.weights = aggregate, base, weights
        self.layout, self.dtype = layout, dtype
        self.mean = weights.sum() * base if isinstance(aggregate, Mean) else np.zeros_like(base)
        self.sent = Traffic(0, 0)

    def add(self, part: slice, uploads: Uploads, limit: int | None = None) -> None:
        """Take in the uploads of a part of the cohort, filled up to at most ``limit`` bytes at a time."""
        n_outputs, weights = self.layout.n_outputs, self.weights[part]
        p = self.layout.n_coefficients // n_outputs
        if isinstance(self.aggregate, Mean):
            add_uploads(self.mean, self.base, weights, uploads, p, n_outputs)
        else:
            size = max(1, len(weights) if limit is None else limit // self.base.nbytes)
            for first in range(0, len(weights), size):
                some = weights[first : first + size]
                up = np.empty((len(some), *self.base.shape), self.dtype)
                fill(up, first, self.base, uploads, p, n_outputs)
                self.aggregate.combine(self.mean, some, up)
        self.sent = traffic(self.sent, uploads, n_outputs, self.layout)


def run_sparse_rows(
    plan: Any, loss: Any, rows: Any, draws: Any, penalty: Any, n_steps: int, down: Array, uploads: Any
) -> None:
    """Fill the uploads, in parallel."""
    for s in prange(uploads.used.size):
        run_one(plan, loss, rows, draws, penalty, n_steps, down, uploads, s)


@kernel
def run_one(
    plan: Any, loss: Any, rows: Any, draws: Any, penalty: Any, n_steps: int, down: Array, uploads: Any, s: int
) -> None:
    """Upload s: a client's round on the features that its minibatches have, or a round of idle features."""
    n_outputs, p = draws.n_outputs, rows.n_columns
    n_intercepts = down.shape[1] - n_outputs * p
    at = n_outputs * uploads.first[s] + n_intercepts * s
    feature = uploads.feature[uploads.first[s] : uploads.first[s + 1]]
    if s < uploads.cohort.size:
        client = uploads.cohort[s]
        batches, start = draw_batches(draws, client, n_steps), draws.offsets[client]
        local = localise(rows, number_anew(batches, start, draws.offsets[client + 1] - start), feature)
    else:
        client, n_intercepts = -1, 0
        for i in range(feature.size):
            feature[i] = uploads.idle[(s - uploads.cohort.size) * IDLE + i]
        batches, local = np.empty((1, 0), np.int64), no_rows(rows, feature.size)
    n = local.n_columns
    point = np.empty((down.shape[0], n_outputs * n + n_intercepts), down.dtype)
    for row in range(down.shape[0]):
        gather(down[row], feature, n, p, n_outputs, point[row])
    up = uploads.values[:, at : at + point.shape[1]]
    oracle = RoundOracle(loss, local, batches, n_outputs)
    regulariser = Regulariser(penalty, Entrywise(n_outputs * n))
    local_loop(plan, oracle, regulariser, client, point, np.empty((0, 0), down.dtype), up)
    uploads.used[s] = n
    uploads.sound[s] = all_sound(up)


@kernel
def spread(mean: Array, weight: float, base: Array, uploads: Any, s: int, p: int, n_outputs: int) -> None:
    """mean ← mean + weight·(up_s − base) on the features and intercepts that upload s has."""
    n_intercepts = mean.shape[1] - n_outputs * p
    n, first = uploads.used[s], uploads.first[s]
    at = n_outputs * first + n_intercepts * s
    for i in range(mean.shape[0]):
        for c in range(n_outputs):
            for q in range(n):
                j = c * p + uploads.feature[first + q]
                mean[i, j] += weight * (uploads.values[i, at + c * n + q] - base[i, j])
        if s < uploads.cohort.size:
            for b in range(n_intercepts):
                mean[i, n_outputs * p + b] += weight * uploads.values[i, at + n_outputs * n + b]


@kernel
def add_uploads(mean: Array, base: Array, weights: Array, uploads: Any, p: int, n_outputs: int) -> None:
    """Add the clients' uploads one after the other, so that no thread count changes a bit."""
    for s in range(weights.size):
        spread(mean, weights[s], base, uploads, s, p, n_outputs)


@kernel
def idle_increments(base: Array, uploads: Any, p: int, n_outputs: int) -> None:
    """Base, zero so far, ← the increments of idle features."""
    for s in range(uploads.cohort.size, uploads.used.size):
        spread(base, 1.0, base, uploads, s, p, n_outputs)


@kernel
def fill(up: Array, first: int, base: Array, uploads: Any, p: int, n_outputs: int) -> None:
    """up[s] ← the upload of client ``first`` + s with the increments ``base`` of what it does not have."""
    n_intercepts = base.shape[1] - n_outputs * p
    for s in range(up.shape[0]):
        n, start = uploads.used[first + s], uploads.first[first + s]
        at = n_outputs * start + n_intercepts * (first + s)
        for i in range(base.shape[0]):
            for q in range(base.shape[1]):
                up[s, i, q] = base[i, q]
            for c in range(n_outputs):
                for q in range(n):
                    up[s, i, c * p + uploads.feature[start + q]] = uploads.values[i, at + c * n + q]
            for b in range(n_intercepts):
                up[s, i, n_outputs * p + b] = uploads.values[i, at + n_outputs * n + b]


@functools.cache
def compiled_sparse_rows(*foreign: type) -> Any:
    """``run_sparse_rows``, cached on disk apart for each set of a user's own types of records."""
    return compiled(run_sparse_rows, foreign, parallel=True)


def room(rows: Any, draws: Any, n_steps: int, cohort: Array) -> Array:
    """For each client of the cohort, at least as many features as it can touch in a round."""
    offsets = draws.offsets
    held = rows.starts[offsets[cohort + 1]] - rows.starts[offsets[cohort]]
    if draws.batch_size:
        held = np.minimum(held, n_steps * draws.batch_size * int(np.max(np.diff(rows.starts))))
    return np.asarray(np.minimum(held, rows.n_columns), dtype=np.int64)


def uploads_of(
    cohort: Array, idle: Array, rooms: Array, n_outputs: int, n_intercepts: int, like: Array
) -> Uploads:
    """Uploads yet to be filled; ``like`` has one row for each vector sent, in the precision it is sent."""
    blocks = np.diff(np.append(np.arange(0, idle.size, IDLE), idle.size))
    first = np.concatenate([[0], np.cumsum(rooms), rooms.sum() + np.cumsum(blocks)]).astype(np.int64)
    n = len(first) - 1
    numbers = n_outputs * int(first[-1]) + n_intercepts * n
    return Uploads(
        cohort,
        idle,
        first,
        np.zeros(n, np.int64),
        np.empty(int(first[-1]), np.int64),
        np.empty((like.shape[0], numbers), like.dtype),
        np.zeros(n, np.bool_),
    )


def parts(rooms: Array, each: int, limit: int) -> Iterator[slice]:
    """Slices of the cohort whose uploads take at most about ``limit`` bytes, ``each`` a feature."""
    part = (np.cumsum(rooms) * (each + 8)) // limit
    edges = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(rooms)]
    return (slice(start, stop) for start, stop in itertools.pairwise(edges))


def traffic(sent: Traffic, uploads: Uploads, n_outputs: int, layout: Layout) -> Traffic:
    """And what these clients sent: values with the numbers of their features, or all if that is shorter."""
    n_vectors, item = uploads.values.shape[0], uploads.values.itemsize
    index = 4 if layout.size < 2**32 else 8
    count = uploads.used[: len(uploads.cohort)]
    floats = n_vectors * (n_outputs * count + layout.n_intercepts)
    whole = n_vectors * layout.size
    is_short = floats * item + count * index < whole * item
    floats = np.where(is_short, floats, whole)
    size = floats * item + np.where(is_short, count * index, 0)
    return Traffic(sent.floats + int(floats.sum()), sent.bytes + int(size.sum()))
