"""The local loops of the clients whose rows are in this process: what each of them uploads in a round.

Clients keep their numbers in the whole federation; those whose rows are elsewhere have no rows here. So a
minibatch, which is drawn for a client's number, is the same wherever the client is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unpooled.algorithms.base import Algorithm
from unpooled.algorithms.gradients import Draws, Oracle, PlainOracle
from unpooled.engines.base import Task
from unpooled.kernels.arrays import Array, Arrays
from unpooled.kernels.compile import foreign_records
from unpooled.kernels.rows import SparseRows
from unpooled.kernels.weighted_sum import all_sound
from unpooled.losses.plain import PlainLoss, PlainRows
from unpooled.penalties.regulariser import Entrywise
from unpooled.problem import BoundProblem

if TYPE_CHECKING:
    from unpooled.data.federated import FederatedData
    from unpooled.engines.local.cohort import Threads
    from unpooled.engines.local.columns.layouts import NonZeros, OccupiedColumns, RowLayout
    from unpooled.engines.local.columns.sparse_rows import Uploads

NOTHING = np.empty(0, np.int64)

Run = Callable[[Array, Array, Array, Array], None]
"""(cohort, memory, up, sound): fills a cohort's uploads, whether each is finite, and what it remembers."""


class Round(NamedTuple):
    """What a client derives from what it is sent, the same for all of them."""

    problem: BoundProblem
    plan: Any
    draws: Draws
    down: Array  # the vectors of ``unpack``, stacked
    w: Array


def is_coordinatewise(algorithm: Algorithm, problem: BoundProblem) -> bool:
    """Whether a coordinate without a gradient moves by itself, the same way at every client."""
    if not problem.is_compiled or algorithm.memory or not algorithm.coordinatewise:
        return False
    penalty, domain = problem.regulariser
    return isinstance(domain, Entrywise) and hasattr(penalty, "entry")


class Loops:
    """Rows and local loops. ``offsets`` says where the rows of each client of the federation are in ``rows``.

    ``keep`` makes the layout of dense rows (``columns.layouts``) when it is first needed.
    """

    def __init__(
        self,
        task: Task,
        rows: Any,
        offsets: Array,
        threads: int | None = None,
        keep: Callable[[], RowLayout] = lambda: None,
    ):
        self.algorithm, self.layout, self.dtype = task.algorithm, task.problem.layout, task.dtype
        self.rows, self.threads = rows, threads
        self.keep = keep
        self.draws = offsets, self.layout.n_outputs, np.uint64(task.seed), task.batch_size or 0
        self._last_layout: tuple[BoundProblem, RowLayout] | None = None  # and the problem that it is for
        self._own_types: tuple[BoundProblem, tuple[type, ...]] | None = None

    @functools.cached_property
    def _kept(self) -> RowLayout:
        return self.keep()

    @functools.cached_property
    def limit(self) -> Threads:
        """A block in which compiled code runs on ``threads`` threads."""
        from unpooled.engines.local.cohort import Threads

        return Threads(self.threads)

    def _foreign(self, problem: BoundProblem) -> tuple[type, ...]:
        """The types of records that are a user's own; a client server sees one problem after the other."""
        if self._own_types is None or self._own_types[0] is not problem:
            records = (self.algorithm.plan(problem, 0), problem.loss, self.rows, *problem.regulariser)
            self._own_types = problem, foreign_records(records)
        return self._own_types[1]

    def round(self, problem: BoundProblem, round: int, down: Arrays) -> Round:
        """What every client of a round begins with."""
        point = self.algorithm.unpack(problem, down, round)
        plan, draws = self.algorithm.plan(problem, round), Draws(*self.draws, round)
        stacked = np.array([point[name] for name in point], dtype=self.dtype)
        return Round(problem, plan, draws, stacked, point.get("w", stacked[0]))

    def names_features(self, problem: BoundProblem) -> bool:
        """Whether uploads are sparse and name the features they have."""
        return isinstance(self.rows, SparseRows) and is_coordinatewise(self.algorithm, problem)

    def moving(self, w: Array) -> Array:
        """The features with a coefficient other than zero: the others stay where they get no gradient."""
        return np.flatnonzero(w[: self.layout.n_coefficients].reshape(self.layout.n_outputs, -1).any(axis=0))

    def sparse(
        self, now: Round, cohort: Array, idle: Array, limit: int | None
    ) -> Iterator[tuple[slice, Uploads]]:
        """Uploads that name their features, in parts of about ``limit`` bytes (None: all at once).

        The first part also has the increments of the ``idle`` features.
        """
        from unpooled.engines.local.columns import sparse_rows

        n_outputs, n_steps = now.draws.n_outputs, self.algorithm.local_steps
        assert n_steps is not None
        like = np.empty((len(self.algorithm.uploads), 0), self.dtype)
        rooms = sparse_rows.room(self.rows, now.draws, n_steps, cohort)
        each = len(like) * n_outputs * self.dtype.itemsize
        records = (now.plan, now.problem.loss, self.rows, now.draws, now.problem.regulariser.penalty)
        run = sparse_rows.compiled_sparse_rows(*self._foreign(now.problem))
        whole = [slice(0, len(cohort))]
        for part in whole if limit is None else sparse_rows.parts(rooms, each, limit):
            uploads = sparse_rows.uploads_of(
                cohort[part], idle, rooms[part], n_outputs, self.layout.n_intercepts, like
            )
            with self.limit:
                run(*records, n_steps, now.down, uploads)
            idle = NOTHING
            yield part, uploads

    def row_layout(self, problem: BoundProblem) -> RowLayout:
        """The copy of dense rows that a problem's loops read; None where they read all columns."""
        if self._last_layout is None or self._last_layout[0] is not problem:
            kept = self._kept if is_coordinatewise(self.algorithm, problem) else None
            self._last_layout = problem, None if kept is None else kept.for_outputs(self.layout.n_outputs)
        return self._last_layout[1]

    def restored(self, problem: BoundProblem, vectors: Array) -> Array:
        """Vectors (…, size) in the order of the loops, back in the order of the problem's layout."""
        own = self.row_layout(problem)
        if own is None:
            return vectors
        flat = own.restored(vectors.reshape(-1, vectors.shape[-1]), self.layout)
        return np.asarray(flat.reshape(*vectors.shape[:-1], -1))

    def whole(
        self, now: Round, cohort: Array, memory: Array, limit: int | None, own_order: bool = False
    ) -> Iterator[tuple[slice, Array, Array]]:
        """Uploads of every coordinate, and whether each is finite, in parts of about ``limit`` bytes.

        A part's uploads are valid until the next one. ``memory`` (S, …), what the clients remember, is
        updated. With ``own_order``, coordinates are in the order of the loops, for ``restored``.
        """
        own = self.row_layout(now.problem)
        if own is None:
            run, size = self._on_all_columns(now), self.layout.size
        else:
            down = own.ordered(now.down, self.layout)
            run, size = self._on_own_columns(now, own, down), down.shape[1]
        shape = (len(self.algorithm.uploads), size)
        each = max(1, shape[0] * shape[1] * self.dtype.itemsize)
        count = len(cohort) if limit is None else max(4 * (self.threads or 1), limit // each)
        up = np.empty((min(count, len(cohort)), *shape), self.dtype)
        for first in range(0, len(cohort), count):
            part = slice(first, min(first + count, len(cohort)))
            chosen = cohort[part]
            sound = np.empty(len(chosen), np.bool_)
            filled = up[: len(chosen)]
            with self.limit:
                run(chosen, memory[part], filled, sound)
            yield part, filled if own_order else self.restored(now.problem, filled), sound

    def _on_own_columns(self, now: Round, own: OccupiedColumns | NonZeros, down: Array) -> Run:
        """Run clients on the columns that are not empty in their rows."""
        from unpooled.engines.local.columns import dense_rows

        problem, n_steps = now.problem, self.algorithm.local_steps
        records = (now.plan, problem.loss, self.rows, now.draws, problem.regulariser.penalty, n_steps)
        function = dense_rows.compiled_dense_rows(*self._foreign(problem))
        moving = self.moving(now.w)
        still = np.zeros((len(self.algorithm.uploads), down.shape[1]), self.dtype)

        def run(cohort: Array, memory: Array, up: Array, sound: Array) -> None:
            function(*records, own, down, dense_rows.Parts(cohort, NOTHING, still, up, sound))

        blocks = np.empty(len(moving), np.bool_)
        nobody = np.empty((0, *still.shape), self.dtype)
        with self.limit:
            function(*records, own, down, dense_rows.Parts(NOTHING, moving, still, nobody, blocks))
        return run

    def _on_all_columns(self, now: Round) -> Run:
        """Run clients on all columns, compiled where loss and penalty are."""
        problem, plan = now.problem, now.plan
        if problem.is_compiled:
            from unpooled.engines.local.cohort import compiled_cohort

            records = (plan, problem.loss, self.rows, now.draws, *problem.regulariser)
            function = compiled_cohort(*self._foreign(problem))
            return lambda cohort, *filled: function(*records, cohort, now.down, *filled)
        kind = PlainOracle if isinstance(problem.loss, PlainLoss) else Oracle
        oracle, loop = kind(problem.loss, self.rows, now.draws), type(plan).local_loop.py_func

        def run(cohort: Array, memory: Array, up: Array, sound: Array) -> None:
            for s, client in enumerate(cohort):
                loop(plan, oracle, problem.regulariser, client, now.down, memory[s], up[s])
                sound[s] = all_sound(up[s])

        return run


def loop_rows(problem: BoundProblem, data: FederatedData) -> Any:
    """The rows of data as the local loops of a problem read them, without a copy."""
    rows = data.record
    if isinstance(problem.loss, PlainLoss):
        return PlainRows(data.X, data.y, rows.weight, problem.layout)
    return rows
