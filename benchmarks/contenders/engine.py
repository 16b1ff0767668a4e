"""Ours: the rounds of ``unpooled.runs.simulate``, through the same federation and the same local engine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from benchmarks.work import SEED, Work
from unpooled._ledger import Ledger
from unpooled.engines import Local
from unpooled.engines.base import Task
from unpooled.runs.federation import Federation, Position


class Engine:
    """What ``simulate`` does but for the evaluation of the objective.

    ``states`` is the precision of the dual vectors: float64 is the default of ``simulate``.
    """

    def __init__(self, work: Work, threads: int | None = None, states: str = "float64"):
        self.work = work
        self.dtype = np.dtype(states)
        self.engine = Local(threads)
        self.blas = ThreadpoolController()

    def federation(self) -> Federation:
        """A run before its first round."""
        work, shape = self.work, self.work.shape
        task = Task(shape.algorithm, work.problem, SEED, shape.batch_size, self.dtype)
        return Federation(
            task=task,
            data=work.data,
            clients=self.engine.open(task, work.data),
            cohort=shape.cohort,
            weighting="renormalised",
            position=Position(shape.algorithm.init(work.problem, work.flat_start), Ledger()),
        )

    def advance(self, federation: Federation, until: int) -> NDArray[np.float64]:
        """The server's iterate (p, C) once so many rounds are done."""
        with self.blas.limit(limits=1, user_api="blas"):  # as simulate does
            for _ in federation.rounds(until):
                pass
        return self.work.coefficients(self.work.shape.algorithm.estimate(self.work.problem, federation.state))

    def run(self, rounds: int) -> NDArray[np.float64]:
        """The server's iterate (p, C) after so many rounds from the start."""
        return self.advance(self.federation(), rounds)
