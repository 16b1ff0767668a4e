"""The local loops of the clients whose rows are here: what each of them uploads in a round.

Clients are numbered as in the whole federation, of which only some may be here: those that are not have no
rows. So a minibatch, which is drawn for a client's number, is the same wherever the client is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unpooled.algorithms.base import Algorithm
from unpooled.algorithms.gradients import Draws, Oracle, PlainOracle
from unpooled.engines.task import Task
from unpooled.kernels.arrays import Array, Arrays
from unpooled.kernels.compile import foreign_records
from unpooled.kernels.rows import SparseRows
from unpooled.losses.plain import PlainLoss, PlainRows
from unpooled.penalties.regulariser import Entrywise
from unpooled.problem import BoundProblem

if TYPE_CHECKING:
    from unpooled.data.federated import FederatedData
    from unpooled.engines.local.cohort import Threads
    from unpooled.engines.local.columns.touched import Uploads

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

    ``keep`` finds the form in which dense rows are kept (``occupied``), once it is needed.
    """

    def __init__(
        self,
        task: Task,
        rows: Any,
        offsets: Array,
        threads: int | None = None,
        keep: Callable[[], Any] = lambda: None,
    ):
        self.algorithm, self.layout, self.dtype = task.algorithm, task.problem.layout, task.dtype
        self.rows, self.threads = rows, threads
        self.keep = keep
        self.draws = offsets, self.layout.n_outputs, np.uint64(task.seed), task.batch_size or 0
        self._form: tuple[BoundProblem, Any] | None = None  # what was last found, and for which problem
        self._own_types: tuple[BoundProblem, tuple[type, ...]] | None = None

    @functools.cached_property
    def _occupied(self) -> Any:
        return self.keep()

    @functools.cached_property
    def limit(self) -> Threads:
        """A block in which compiled code runs on so many threads."""
        from unpooled.engines.local.cohort import Threads

        return Threads(self.threads)

    @functools.cached_property
    def _compiled_cohort(self) -> Any:
        from unpooled.engines.local.cohort import compiled_cohort

        return compiled_cohort

    def _foreign(self, problem: BoundProblem) -> tuple[type, ...]:
        """The types of records that are a user's own; a desk asks for one problem after the other."""
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
        """The features with a coefficient that is not zero: without a gradient the others stay."""
        return np.flatnonzero(w[: self.layout.n_coefficients].reshape(self.layout.n_outputs, -1).any(axis=0))

    def touched(
        self, now: Round, cohort: Array, idle: Array, limit: int | None
    ) -> Iterator[tuple[slice, Uploads]]:
        """Uploads that name their features, in parts of about ``limit`` bytes (None: all at once).

        The first part also has the increments of the ``idle`` features.
        """
        from unpooled.engines.local.columns import touched

        n_outputs, n_steps = now.draws.n_outputs, self.algorithm.local_steps
        assert n_steps is not None
        like = np.empty((len(self.algorithm.uploads), 0), self.dtype)
        rooms = touched.room(self.rows, now.draws, n_steps, cohort)
        each = len(like) * n_outputs * self.dtype.itemsize
        whole = [slice(0, len(cohort))]
        for part in whole if limit is None else touched.parts(rooms, each, limit):
            uploads = touched.uploads_of(
                cohort[part], idle, rooms[part], n_outputs, self.layout.n_intercepts, like
            )
            records = (now.plan, now.problem.loss, self.rows, now.draws, now.problem.regulariser.penalty)
            function = touched.compiled_touched(*self._foreign(now.problem))
            self._call(function, (*records, n_steps, now.down, uploads))
            idle = NOTHING
            yield part, uploads

    def own_form(self, problem: BoundProblem) -> Any:
        """How dense rows are kept (see ``occupied``); None for loops that run on all columns."""
        if self._form is None or self._form[0] is not problem:
            is_whole = not is_coordinatewise(self.algorithm, problem) or self._occupied is None
            self._form = problem, None if is_whole else self._occupied.for_outputs(self.layout.n_outputs)
        return self._form[1]

    def restored(self, problem: BoundProblem, vectors: Array) -> Array:
        """Vectors (…, size) in the order of the loops, as the layout has them."""
        own = self.own_form(problem)
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
        own = self.own_form(now.problem)
        if own is None:
            run, size = self._on_all_columns(now), self.layout.size
        else:
            down = own.ordered(now.down, self.layout)
            run, size = self._on_occupied(now, own, down), down.shape[1]
        shape = (len(self.algorithm.uploads), size)
        each = max(1, shape[0] * shape[1] * self.dtype.itemsize)
        count = len(cohort) if limit is None else max(4 * (self.threads or 1), limit // each)
        up = np.empty((min(count, len(cohort)), *shape), self.dtype)
        for first in range(0, len(cohort), count):
            part = slice(first, min(first + count, len(cohort)))
            chosen = cohort[part]
            sound = np.empty(len(chosen), np.bool_)
            filled = up[: len(chosen)]
            run(chosen, memory[part], filled, sound)
            yield part, filled if own_order else self.restored(now.problem, filled), sound

    def _on_occupied(self, now: Round, own: Any, down: Array) -> Run:
        """Uploads of clients that leave out the columns that are vacant in their rows."""
        from unpooled.engines.local.columns import vacant

        problem = now.problem
        records = (now.plan, problem.loss, self.rows, now.draws, problem.regulariser.penalty)
        function = vacant.compiled_occupied(*self._foreign(problem))
        moving = self.moving(now.w)
        still = np.zeros((len(self.algorithm.uploads), down.shape[1]), self.dtype)

        def run(cohort: Array, memory: Array, up: Array, sound: Array) -> None:
            parts = vacant.Parts(cohort, NOTHING, still, up, sound)
            self._call(function, (*records, self.algorithm.local_steps, own, down, parts))

        blocks = np.empty(len(moving), np.bool_)
        parts = vacant.Parts(NOTHING, moving, still, np.empty((0, *still.shape), self.dtype), blocks)
        self._call(function, (*records, self.algorithm.local_steps, own, down, parts))
        return run

    def _on_all_columns(self, now: Round) -> Run:
        """Uploads of clients that work on all columns, compiled where loss and penalty are."""
        problem, plan = now.problem, now.plan
        if problem.is_compiled:
            function = self._compiled_cohort(*self._foreign(problem))
            records = (plan, problem.loss, self.rows, now.draws, *problem.regulariser)
            return lambda *filled: self._call(function, (*records, filled[0], now.down, *filled[1:]))
        from unpooled.kernels.weighted_sum import all_sound

        kind = PlainOracle if isinstance(problem.loss, PlainLoss) else Oracle
        oracle, loop = kind(problem.loss, self.rows, now.draws), type(plan).local_loop.py_func

        def run(cohort: Array, memory: Array, up: Array, sound: Array) -> None:
            for s, client in enumerate(cohort):
                loop(plan, oracle, problem.regulariser, client, now.down, memory[s], up[s])
                sound[s] = all_sound(up[s])

        return run

    def _call(self, function: Any, arguments: tuple[Any, ...]) -> None:
        """Run a compiled loop over clients."""
        with self.limit:
            function(*arguments)


def loop_rows(problem: BoundProblem, data: FederatedData) -> Any:
    """The rows of data as the local loops of a problem read them, without a copy."""
    rows = data.record
    if isinstance(problem.loss, PlainLoss):
        return PlainRows(data.X, data.y, rows.weight, problem.layout)
    return rows
