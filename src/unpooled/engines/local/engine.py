"""The local engine: all clients in this process, compiled, in parallel over the cohort."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from unpooled._ledger import Traffic
from unpooled.aggregation.base import Aggregate, Mean
from unpooled.engines.base import Broadcast, DivergenceError, Gathered, Memory, Say, Task, Weigh, say_nothing
from unpooled.engines.local.columns import layouts
from unpooled.engines.local.loops import Loops, Round, loop_rows
from unpooled.exact.clients import OracleClients
from unpooled.kernels.arrays import Array

if TYPE_CHECKING:
    from unpooled.data.federated import FederatedData

UPLOAD_BYTES = 2**26  # uploads held at a time; larger cohorts go through in parts, with the same bits


@dataclass(frozen=True)
class Local:
    """Run in this process on ``threads`` threads (None: all cores). Results do not depend on it."""

    threads: int | None = None

    def __post_init__(self) -> None:
        if self.threads is not None and not (isinstance(self.threads, int) and self.threads >= 1):
            raise ValueError(f"threads must be a whole number of at least 1, got {self.threads!r}")

    def open(
        self, task: Task, data: FederatedData, memory: Array | None = None, say: Say = say_nothing
    ) -> LocalClients:
        """The clients of a run, ready for its rounds. There is nothing for them to say: all take part."""
        return LocalClients(task, data, self.threads, memory)

    def open_oracles(self, data: FederatedData) -> OracleClients:
        """The clients of an exact solver, ready for its questions."""
        return OracleClients(data)


class LocalClients:
    """All clients of a run: their local loops, and what they remember from round to round."""

    def __init__(self, task: Task, data: FederatedData, threads: int | None, memory: Array | None):
        self.algorithm, self.layout, self.dtype = task.algorithm, task.problem.layout, task.dtype
        rows, n_outputs = loop_rows(task.problem, data), self.layout.n_outputs
        self.loops = Loops(task, rows, data.offsets, threads, lambda: layouts.layout_of(data, n_outputs))
        self.memory = first_memory(task, data.n_clients, memory)

    def notes(self) -> list[str]:
        """Nothing to note: all clients take part."""
        return []

    def remember(self, memory: Memory) -> None:
        """Keep what clients computed for themselves in a round that counts."""
        cohort, rows = memory
        self.memory[cohort] = rows

    def round(self, sent: Broadcast, weigh: Weigh, aggregate: Aggregate) -> Gathered:
        """Run the cohort's local loops and combine the uploads.

        Raises ``DivergenceError`` where an upload is not finite.
        """
        now, cohort = self.loops.round(sent.problem, sent.round, sent.down), sent.cohort
        weights, participation = weigh(cohort)
        kept = None
        with self.loops.limit:
            if self.loops.names_features(sent.problem):
                mean, traffic = self._sparse(now, cohort, weights, aggregate)
            else:
                memory = self.memory[cohort] if self.algorithm.memory else self.memory[: len(cohort)]
                mean = self._whole(now, memory, cohort, weights, aggregate)
                numbers = len(cohort) * mean.size
                traffic = Traffic(numbers, numbers * self.dtype.itemsize)
                kept = (cohort, memory) if self.algorithm.memory else None
        vectors = dict(zip(self.algorithm.uploads, mean, strict=True))
        return Gathered(vectors, participation, cohort, kept, traffic)

    def _sparse(
        self, now: Round, cohort: Array, weights: Array, aggregate: Aggregate
    ) -> tuple[Array, Traffic]:
        """What uploads that name their features come to, and their traffic."""
        from unpooled.engines.local.columns.sparse_rows import SparseSum

        total = None
        limit = None if aggregate.needs_all else UPLOAD_BYTES
        for part, uploads in self.loops.sparse(now, cohort, self.loops.moving(now.w), limit):
            if aggregate.refuses_infinite:
                check_sound(cohort[part], uploads.sound[: len(uploads.cohort)])
            if total is None:  # the first part has the idle features
                total = SparseSum(aggregate, uploads.base(self.layout), weights, self.layout, self.dtype)
            total.add(part, uploads, limit)
        assert total is not None
        return total.mean, total.sent

    def _whole(self, now: Round, memory: Array, cohort: Array, weights: Array, aggregate: Aggregate) -> Array:
        """What uploads as long as the flat vector come to."""
        mean = np.empty(0)
        limit = None if aggregate.needs_all else UPLOAD_BYTES
        own_order = isinstance(aggregate, Mean)  # others may look at more than one coordinate
        for part, up, sound in self.loops.whole(now, cohort, memory, limit, own_order):
            if aggregate.refuses_infinite:
                check_sound(cohort[part], sound)
            if part.start == 0:
                mean = np.zeros(up.shape[1:])
            aggregate.combine(mean, weights[part], up)
        return self.loops.restored(now.problem, mean) if own_order else mean


def first_memory(task: Task, n_clients: int, saved: Array | None) -> Array:
    """What clients remember before a run's first round (K, …): nothing, or what was saved."""
    kept = len(task.algorithm.memory)
    shape = (n_clients, kept, task.problem.layout.size if kept else 0)
    memory = np.zeros(shape, task.dtype) if saved is None else np.array(saved, task.dtype)
    if memory.shape != shape:
        raise ValueError(f"the clients' memory has shape {memory.shape}, expected {shape}")
    return memory


def check_sound(cohort: Array, sound: Array) -> None:
    """Raise for the first client whose upload is not finite."""
    if len(sound) and not sound[first := sound.argmin()]:
        raise DivergenceError(int(cohort[first]))
