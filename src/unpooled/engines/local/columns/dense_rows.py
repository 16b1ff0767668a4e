"""One round of a cohort on dense rows: a client works on the columns that are not empty in its rows.

See ``columns`` for why the others need no work. The client reads a copy of its rows (``layouts``), its
coefficients in the order that suits the copy. Uploads are whole, and in that order too; the mean is put back
into the usual order once.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numba import prange

from unpooled.algorithms.base import local_loop
from unpooled.engines.local.columns.local_numbering import RoundOracle, draw_batches
from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import compiled, kernel, method
from unpooled.kernels.weighted_sum import all_sound
from unpooled.penalties.regulariser import Entrywise, Regulariser

IDLE = 128  # columns that go through the loop on no rows at a time

local_rows = method("local")
no_rows = method("nothing")
gather = method("gather")
scatter = method("scatter")
room = method("room")


class Parts(NamedTuple):
    """What runs in parallel: the clients of ``cohort``, or, where there are none, blocks of ``idle`` columns.

    ``still`` is the upload of a client whose columns are all empty. It is filled first, from the idle
    columns, and then the clients' uploads ``up``, which agree with it on the columns that are empty.
    """

    cohort: Array
    idle: Array
    still: Array
    up: Array
    sound: Array


def run_dense_rows(
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
    """Fill the clients' uploads, or the one on no rows, in parallel; ``down`` is ``own.ordered``."""
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
    n_outputs, p, each = draws.n_outputs, rows.X.shape[1], room(own, draws.n_outputs)
    n_intercepts = down.shape[1] - each * p
    if parts.cohort.size > 0:
        client, out = parts.cohort[s], parts.up[s]
        for row in range(out.shape[0]):
            for q in range(out.shape[1]):
                out[row, q] = parts.still[row, q]
        feature = own.feature[own.first[client] : own.first[client + 1]]
        batches = draw_batches(draws, client, n_steps)
        local = local_rows(own, rows, draws.offsets, client)
    else:
        client, out, n_intercepts = -1, parts.still, 0
        feature = parts.idle[s * IDLE : (s + 1) * IDLE]
        batches, local = np.empty((1, 0), np.int64), no_rows(own, rows, feature.size)
    n = feature.size
    point = np.empty((down.shape[0], each * n + n_intercepts), down.dtype)
    for row in range(down.shape[0]):
        gather(own, down[row], feature, p, n_outputs, point[row])
    up = np.empty((out.shape[0], point.shape[1]), out.dtype)
    oracle = RoundOracle(loss, local, batches, n_outputs)
    regulariser = Regulariser(penalty, Entrywise(each * n))
    local_loop(plan, oracle, regulariser, client, point, np.empty((0, 0), down.dtype), up)
    for row in range(out.shape[0]):
        scatter(own, up[row], feature, p, n_outputs, out[row])
    parts.sound[s] = all_sound(up)


@functools.cache
def compiled_dense_rows(*foreign: type) -> Any:
    """``run_dense_rows``, cached on disk apart for each set of a user's own types of records."""
    return compiled(run_dense_rows, foreign, parallel=True)
