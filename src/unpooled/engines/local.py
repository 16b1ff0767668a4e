"""The local engine: all clients in this process, compiled, in parallel over the cohort."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from unpooled.algorithms.base import Algorithm
from unpooled.arrays import Array, Arrays
from unpooled.engines.oracles import OracleClients
from unpooled.kernel import foreign_records
from unpooled.oracle import Draws, Oracle, PlainOracle
from unpooled.plain import PlainLoss, PlainRows
from unpooled.problem import BoundProblem
from unpooled.rows import rows_of

if TYPE_CHECKING:
    from unpooled.data import FederatedData

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

    def open(
        self,
        algorithm: Algorithm,
        problem: BoundProblem,
        data: FederatedData,
        seed: int,
        batch_size: int | None,
        dtype: np.dtype[Any],
        memory: Array | None = None,
    ) -> LocalClients:
        """The clients of a run, ready for its rounds."""
        return LocalClients(self, algorithm, problem, data, seed, batch_size, dtype, memory)

    def open_oracles(self, data: FederatedData) -> OracleClients:
        """The clients of an exact solver, ready for its questions."""
        return OracleClients(data)


class LocalClients:
    """All clients of a run: their rows, and what they remember from round to round."""

    def __init__(
        self,
        engine: Local,
        algorithm: Algorithm,
        problem: BoundProblem,
        data: FederatedData,
        seed: int,
        batch_size: int | None,
        dtype: np.dtype[Any],
        memory: Array | None,
    ):
        self.threads = engine.threads
        self.say: Callable[[str], None] = lambda sentence: None
        self.is_ready = False
        self.algorithm = algorithm
        self.layout = problem.layout
        self.dtype = dtype
        self.draws = Draws(data.offsets, self.layout.n_outputs, np.uint64(seed), 0, batch_size or 0)
        self.rows: Any = rows_of(data)
        if isinstance(problem.loss, PlainLoss):
            self.rows = PlainRows(data.X, data.y, self.rows.weight, self.layout)
        kept = len(algorithm.memory)
        shape = (data.n_clients, kept, self.layout.size if kept else 0)
        self.memory = np.zeros(shape, dtype) if memory is None else np.array(memory, dtype)
        if self.memory.shape != shape:
            raise ValueError(f"the clients' memory has shape {self.memory.shape}, expected {shape}")

    def remember(self, memory: Memory) -> None:
        """Let clients keep what they computed in a round that counts."""
        cohort, rows = memory
        self.memory[cohort] = rows

    def round(
        self, problem: BoundProblem, round: int, down: Arrays, cohort: Array, weights: Array
    ) -> tuple[Arrays, Memory | None]:
        """The weighted mean of the cohort's uploads, and what its clients will remember once it counts.

        Raises ``DivergenceError`` where an upload is not finite.
        """
        from unpooled.engines.cohort import add_weighted

        point = self.algorithm.unpack(problem, down, round)
        stacked = np.array([point[name] for name in point], dtype=self.dtype)
        names = self.algorithm.uploads
        mean = np.zeros((len(names), self.layout.size))
        each = max(1, len(names) * self.layout.size * self.dtype.itemsize)
        part = max(4 * (self.threads or 1), UPLOAD_BYTES // each)
        up = np.empty((min(part, len(cohort)), len(names), self.layout.size), self.dtype)
        memory = self.memory[cohort]
        for first in range(0, len(cohort), part):
            chosen = cohort[first : first + part]
            self._run(problem, round, chosen, stacked, memory[first : first + part], up[: len(chosen)])
            add_weighted(mean, weights[first : first + part], up[: len(chosen)])
        return dict(zip(names, mean, strict=True)), (cohort, memory) if self.algorithm.memory else None

    def _run(
        self, problem: BoundProblem, round: int, cohort: Array, down: Array, memory: Array, up: Array
    ) -> None:
        """Fill ``up`` with the uploads of ``cohort``, compiled where loss and penalty are."""
        from unpooled.engines.cohort import all_sound, compiled_cohort, is_new, threads

        plan, draws = self.algorithm.plan(problem, round), self.draws._replace(round=round)
        sound = np.empty(len(cohort), np.bool_)
        if problem.is_compiled:
            records = (plan, problem.loss, self.rows, draws, *problem.regulariser)
            arguments = (*records, cohort, down, memory, up, sound)
            function = compiled_cohort(*foreign_records(records))
            if not self.is_ready and is_new(function, arguments):
                self.say("readying the compiled local loop; what is not yet on disk is compiled, once …")
            with threads(self.threads):
                function(*arguments)
            self.is_ready = True
        else:
            oracle = (PlainOracle if isinstance(problem.loss, PlainLoss) else Oracle)(
                problem.loss, self.rows, draws
            )
            for s, client in enumerate(cohort):
                loop = type(plan).local_loop.py_func
                loop(plan, oracle, problem.regulariser, client, down, memory[s], up[s])
                sound[s] = all_sound(up[s])
        if not sound.all():
            raise DivergenceError(int(cohort[np.argmin(sound)]))
