"""The local engine: all clients in this process, compiled, in parallel over the cohort."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from unpooled._ledger import Traffic
from unpooled.aggregation.base import Aggregate, Mean
from unpooled.engines.gathered import Gathered, Weigh
from unpooled.engines.local.loops import Loops, Round, loop_rows
from unpooled.engines.task import Task
from unpooled.exact.clients import OracleClients
from unpooled.kernels.arrays import Array, Arrays
from unpooled.problem import BoundProblem

if TYPE_CHECKING:
    from unpooled.data.federated import FederatedData

Memory = tuple[Array, Array]
"""Clients, and what each of them is to remember."""

UPLOAD_BYTES = 2**26  # uploads held at a time; larger cohorts go through in parts, with the same bits


class DivergenceError(ArithmeticError):
    """A client's upload is not finite."""

    def __init__(self, client: int):
        super().__init__(client)
        self.client = client


@dataclass(frozen=True)
class Local:
    """Run in this process on ``threads`` threads (None: all cores). Results do not depend on it."""

    threads: int | None = None

    def __post_init__(self) -> None:
        if self.threads is not None and not (isinstance(self.threads, int) and self.threads >= 1):
            raise ValueError(f"threads must be a whole number of at least 1, got {self.threads!r}")

    def open(self, task: Task, data: FederatedData, memory: Array | None = None) -> LocalClients:
        """The clients of a run, ready for its rounds."""
        return LocalClients(task, data, self.threads, memory)

    def open_oracles(self, data: FederatedData) -> OracleClients:
        """The clients of an exact solver, ready for its questions."""
        return OracleClients(data)


class LocalClients:
    """All clients of a run: their local loops, and what they remember from round to round."""

    def __init__(self, task: Task, data: FederatedData, threads: int | None, memory: Array | None):
        from unpooled.engines.local.columns.occupied import occupied_of

        self.algorithm, self.layout, self.dtype = task.algorithm, task.problem.layout, task.dtype
        rows = loop_rows(task.problem, data)
        self.loops = Loops(
            task, rows, data.offsets, threads, lambda: occupied_of(data, self.layout.n_outputs)
        )
        self.memory = first_memory(task, data.n_clients, memory)
        self.say: Callable[[str], None] = lambda sentence: None  # as clients elsewhere; these never do

    def notes(self) -> list[str]:
        """What there is to say about the clients: nothing, all take part."""
        return []

    def remember(self, memory: Memory) -> None:
        """Let clients keep what they computed in a round that counts."""
        cohort, rows = memory
        self.memory[cohort] = rows

    def round(
        self,
        problem: BoundProblem,
        round: int,
        down: Arrays,
        cohort: Array,
        weigh: Weigh,
        aggregate: Aggregate,
    ) -> Gathered:
        """What the cohort's uploads come to.

        Raises ``DivergenceError`` where an upload is not finite.
        """
        now = self.loops.round(problem, round, down)
        weights, participation = weigh(cohort)
        kept = None
        with self.loops.limit:
            if self.loops.names_features(problem):
                mean, sent = self._named(now, cohort, weights, aggregate)
            else:
                memory = self.memory[cohort] if self.algorithm.memory else self.memory[: len(cohort)]
                mean = self._whole(now, memory, cohort, weights, aggregate)
                numbers = len(cohort) * mean.size
                sent = Traffic(numbers, numbers * self.dtype.itemsize)
                kept = (cohort, memory) if self.algorithm.memory else None
        vectors = dict(zip(self.algorithm.uploads, mean, strict=True))
        return Gathered(vectors, participation, cohort, kept, sent)

    def _named(
        self, now: Round, cohort: Array, weights: Array, aggregate: Aggregate
    ) -> tuple[Array, Traffic]:
        """What uploads that name the features they have come to, and what was sent."""
        if isinstance(aggregate, Mean):
            return self._touched(now, cohort, weights)
        return self._filled(now, cohort, weights, aggregate)

    def _touched(self, now: Round, cohort: Array, weights: Array) -> tuple[Array, Traffic]:
        """Their mean, without filling any of them up."""
        from unpooled.engines.local.columns import touched

        n_outputs, p = now.draws.n_outputs, self.loops.rows.n_columns
        base = np.zeros((len(self.algorithm.uploads), self.layout.size))
        mean, sent = base, Traffic(0, 0)
        for part, uploads in self.loops.touched(now, cohort, self.loops.moving(now.w), UPLOAD_BYTES):
            check_sound(cohort[part], uploads.sound[: len(uploads.cohort)])
            if part.start == 0:
                touched.idle_increments(base, uploads, p, n_outputs)
                mean = weights.sum() * base
            touched.add_uploads(mean, base, weights[part], uploads, p, n_outputs)
            sent = touched.traffic(sent, uploads, n_outputs, self.layout)
        return mean, sent

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

    def _filled(
        self, now: Round, cohort: Array, weights: Array, aggregate: Aggregate
    ) -> tuple[Array, Traffic]:
        """What they come to once they are filled up to the flat vector."""
        from unpooled.engines.local.columns import touched

        n_outputs, p = now.draws.n_outputs, self.loops.rows.n_columns
        base = np.zeros((len(self.algorithm.uploads), self.layout.size))
        mean, sent = np.zeros_like(base), Traffic(0, 0)
        limit = None if aggregate.needs_all else UPLOAD_BYTES
        for part, uploads in self.loops.touched(now, cohort, self.loops.moving(now.w), limit):
            if aggregate.refuses_infinite:
                check_sound(cohort[part], uploads.sound[: len(uploads.cohort)])
            if part.start == 0:
                touched.idle_increments(base, uploads, p, n_outputs)
            for some in _slices(part.stop - part.start, limit, base.nbytes):
                up = np.empty((some.stop - some.start, *base.shape), self.dtype)
                touched.fill(up, some.start, base, uploads, p, n_outputs)
                aggregate.combine(mean, weights[part][some], up)
            sent = touched.traffic(sent, uploads, n_outputs, self.layout)
        return mean, sent


def _slices(count: int, limit: int | None, each: int) -> Iterator[slice]:
    """Parts of so many uploads of so many bytes each."""
    size = count if limit is None else max(1, limit // each)
    return (slice(first, min(first + size, count)) for first in range(0, count, max(1, size)))


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
