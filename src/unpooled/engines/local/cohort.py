"""One round of a cohort in compiled code: the clients in parallel, each one's whole local loop in one go."""

from __future__ import annotations

import functools
from typing import Any

import numba
from numba import prange

from unpooled.algorithms.base import local_loop
from unpooled.algorithms.gradients import Oracle
from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import compiled
from unpooled.kernels.weighted_sum import all_sound
from unpooled.penalties.regulariser import Regulariser


def run_cohort(
    plan: Any,
    loss: Any,
    rows: Any,
    draws: Any,
    penalty: Any,
    domain: Any,
    cohort: Array,
    down: Array,
    memory: Array,
    up: Array,
    sound: Array,
) -> None:
    """Fill ``up[s]`` with the upload of client ``cohort[s]``; ``sound[s]`` says whether it is finite.

    The oracle and the regulariser come in pieces, because numba hands a parallel loop only records
    without records inside.
    """
    for s in prange(cohort.size):
        client = cohort[s]
        oracle = Oracle(loss, rows, draws)
        regulariser = Regulariser(penalty, domain)
        local_loop(plan, oracle, regulariser, client, down, memory[s], up[s])
        sound[s] = all_sound(up[s])


@functools.cache
def compiled_cohort(*foreign: type) -> Any:
    """``run_cohort``, cached on disk apart for each set of a user's own types of records."""
    return compiled(run_cohort, foreign, parallel=True)


def launched() -> int:
    """How many threads numba has."""
    return int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]


class Threads:
    """Compiled loops inside run on so many threads, at most the cores there are (None: on all).

    A block inside another one has no more to do.
    """

    def __init__(self, count: int | None):
        self.count = None if count is None else min(count, launched())
        self.depth = 0
        self.before: int | None = None

    def __enter__(self) -> None:
        self.depth += 1
        if self.depth > 1 or self.count is None:
            return
        now = int(numba.get_num_threads())
        if self.count != now:
            self.before = now
            numba.set_num_threads(self.count)

    def __exit__(self, *error: object) -> None:
        self.depth -= 1
        if self.depth == 0 and self.before is not None:
            numba.set_num_threads(self.before)
            self.before = None
