"""The local engine: all clients in this process, compiled, in parallel over the cohort."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from unpooled.algorithms.base import Algorithm
from unpooled.arrays import Array, Arrays
from unpooled.engines.oracles import OracleClients
from unpooled.kernel import foreign_records
from unpooled.ledger import Traffic
from unpooled.oracle import Draws, Oracle, PlainOracle
from unpooled.plain import PlainLoss, PlainRows
from unpooled.problem import BoundProblem
from unpooled.regulariser import Entrywise
from unpooled.rows import SparseRows, rows_of

if TYPE_CHECKING:
    from unpooled.data import FederatedData

Memory = tuple[Array, Array]
"""Clients, and what each of them is to remember."""

Run = Callable[[Array, Array, Array, Array], None]
"""(cohort, memory, up, sound): fills a cohort's uploads, whether each is finite, and what it remembers."""

NOTHING = np.empty(0, np.int64)
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
        self.data = data
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
    ) -> tuple[Arrays, Memory | None, Traffic]:
        """The weighted mean of the cohort's uploads, what its clients will remember once it counts, and what
        they sent.

        Raises ``DivergenceError`` where an upload is not finite.
        """
        point = self.algorithm.unpack(problem, down, round)
        plan, draws = self.algorithm.plan(problem, round), self.draws._replace(round=round)
        stacked = np.array([point[name] for name in point], dtype=self.dtype)
        names = self.algorithm.uploads
        if isinstance(self.rows, SparseRows) and self._is_coordinatewise(problem):
            mean, sent = self._touched(problem, plan, draws, stacked, point["w"], cohort, weights)
            return dict(zip(names, mean, strict=True)), None, sent
        memory = self.memory[cohort]
        if self._is_coordinatewise(problem) and self._occupied is not None:
            run = self._on_occupied(problem, plan, draws, stacked, point["w"])
        else:
            run = self._on_all_columns(problem, plan, draws, stacked)
        mean = self._whole(run, memory, cohort, weights)
        numbers = len(cohort) * mean.size
        sent = Traffic(numbers, numbers * self.dtype.itemsize)
        return dict(zip(names, mean, strict=True)), (cohort, memory) if self.algorithm.memory else None, sent

    def _is_coordinatewise(self, problem: BoundProblem) -> bool:
        """Whether a coordinate without a gradient moves by itself, the same way at every client."""
        algorithm = self.algorithm
        if not problem.is_compiled or algorithm.memory or not algorithm.coordinatewise:
            return False
        penalty, domain = problem.regulariser
        return isinstance(domain, Entrywise) and hasattr(penalty, "entry")

    def _moving(self, w: Array) -> Array:
        """The features with a coefficient that is not zero: without a gradient the others stay."""
        return np.flatnonzero(w[: self.layout.n_coefficients].reshape(self.layout.n_outputs, -1).any(axis=0))

    @functools.cached_property
    def _occupied(self) -> Any:
        """The rows on the columns that each client occupies, where that leaves enough of them out."""
        from unpooled.engines.occupied import occupied_of

        return occupied_of(self.data, self.layout.n_outputs)

    def _touched(
        self,
        problem: BoundProblem,
        plan: Any,
        draws: Draws,
        down: Array,
        w: Array,
        cohort: Array,
        weights: Array,
    ) -> tuple[Array, Traffic]:
        """The mean of uploads that name the features they have, and what was sent."""
        from unpooled.engines import touched

        n_outputs, p, n_steps = draws.n_outputs, self.rows.n_columns, self.algorithm.local_steps
        moving = self._moving(w)
        like = np.empty((len(self.algorithm.uploads), 0), self.dtype)
        base = np.zeros((len(like), self.layout.size))
        rooms = touched.room(self.rows, draws, n_steps, cohort)
        mean, sent = base, Traffic(0, 0)
        for part in touched.parts(rooms, len(like) * n_outputs * self.dtype.itemsize, UPLOAD_BYTES):
            uploads = touched.uploads_of(
                cohort[part], moving, rooms[part], n_outputs, self.layout.n_intercepts, like
            )
            records = (plan, problem.loss, self.rows, draws, problem.regulariser.penalty)
            function = touched.compiled_touched(*foreign_records(records))
            self._call(function, (*records, n_steps, down, uploads))
            self._check(cohort[part], uploads.sound[: len(uploads.cohort)])
            if moving is not NOTHING:
                touched.idle_increments(base, uploads, p, n_outputs)
                mean, moving = weights.sum() * base, NOTHING
            touched.add_uploads(mean, base, weights[part], uploads, p, n_outputs)
            sent = touched.traffic(sent, uploads, n_outputs, self.layout)
        return mean, sent

    def _whole(self, run: Run, memory: Array, cohort: Array, weights: Array) -> Array:
        """The mean of uploads as long as the flat vector."""
        from unpooled.engines.cohort import add_weighted

        mean = np.zeros((len(self.algorithm.uploads), self.layout.size))
        each = max(1, mean.size * self.dtype.itemsize)
        part = max(4 * (self.threads or 1), UPLOAD_BYTES // each)
        up = np.empty((min(part, len(cohort)), *mean.shape), self.dtype)
        for first in range(0, len(cohort), part):
            chosen = cohort[first : first + part]
            sound = np.empty(len(chosen), np.bool_)
            run(chosen, memory[first : first + part], up[: len(chosen)], sound)
            self._check(chosen, sound)
            add_weighted(mean, weights[first : first + part], up[: len(chosen)])
        return mean

    def _on_occupied(self, problem: BoundProblem, plan: Any, draws: Draws, down: Array, w: Array) -> Run:
        """Uploads of clients that leave out the columns that are vacant in their rows."""
        from unpooled.engines import vacant

        records = (plan, problem.loss, self.rows, draws, problem.regulariser.penalty)
        function = vacant.compiled_occupied(*foreign_records(records))
        moving, down = self._moving(w), self._occupied.ordered(down, self.layout)
        still = np.zeros((len(self.algorithm.uploads), self.layout.size), self.dtype)

        def run(cohort: Array, memory: Array, up: Array, sound: Array) -> None:
            parts = vacant.Parts(cohort, NOTHING, still, up, sound)
            self._call(function, (*records, self.algorithm.local_steps, self._occupied, down, parts))

        blocks = np.empty(len(moving), np.bool_)
        parts = vacant.Parts(NOTHING, moving, still, np.empty((0, *still.shape), self.dtype), blocks)
        self._call(function, (*records, self.algorithm.local_steps, self._occupied, down, parts))
        return run

    def _on_all_columns(self, problem: BoundProblem, plan: Any, draws: Draws, down: Array) -> Run:
        """Uploads of clients that work on all columns, compiled where loss and penalty are."""
        from unpooled.engines.cohort import all_sound, compiled_cohort

        if problem.is_compiled:
            records = (plan, problem.loss, self.rows, draws, *problem.regulariser)
            function = compiled_cohort(*foreign_records(records))
            return lambda *filled: self._call(function, (*records, filled[0], down, *filled[1:]))
        kind = PlainOracle if isinstance(problem.loss, PlainLoss) else Oracle
        oracle, loop = kind(problem.loss, self.rows, draws), type(plan).local_loop.py_func

        def run(cohort: Array, memory: Array, up: Array, sound: Array) -> None:
            for s, client in enumerate(cohort):
                loop(plan, oracle, problem.regulariser, client, down, memory[s], up[s])
                sound[s] = all_sound(up[s])

        return run

    def _call(self, function: Any, arguments: tuple[Any, ...]) -> None:
        """Run a compiled loop over clients; the first time may take a while, and says so."""
        from unpooled.engines.cohort import is_new, threads

        if not self.is_ready and is_new(function, arguments):
            self.say("readying the compiled local loop; what is not yet on disk is compiled, once …")
        with threads(self.threads):
            function(*arguments)
        self.is_ready = True

    def _check(self, cohort: Array, sound: Array) -> None:
        if not sound.all():
            raise DivergenceError(int(cohort[np.argmin(sound)]))
