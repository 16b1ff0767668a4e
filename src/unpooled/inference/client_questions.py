"""The questions that inference asks clients, one round at a time; a refusal raises an error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unpooled.data.federated import FederatedData
from unpooled.data.folds import BySite, Fold
from unpooled.exact.choose import MOST_FEATURES
from unpooled.exact.clients import Question, QuestionEngine, open_clients
from unpooled.exact.prox_newton import ProxNewton
from unpooled.exact.rounds import Server, Solve
from unpooled.exact.sufficient_statistics import SufficientStatistics
from unpooled.inference.argument_checks import check_answers, check_refused
from unpooled.kernels.arrays import Array, Arrays, Float
from unpooled.problem import BoundProblem


@dataclass(frozen=True)
class ClientQuestions:
    """A problem and the clients that answer questions about it; ``what`` names the caller in errors."""

    problem: BoundProblem
    data: FederatedData
    server: Server
    min_rows: int
    what: str

    @classmethod
    def of(
        cls,
        problem: BoundProblem,
        data: FederatedData,
        engine: QuestionEngine | None,
        min_rows: int,
        what: str,
    ) -> ClientQuestions:
        """The clients of an engine, with an empty ledger."""
        return cls(problem, data, Server(open_clients(engine, data)), min_rows, what)

    def statistics(self) -> Arrays:
        """Sufficient statistics of least squares and their solution: one round, or two if means are large."""
        self.check_width()
        solver = SufficientStatistics(self.min_rows)
        task = Solve(solver, self.problem, solver.init(self.problem, np.zeros(self.problem.layout.size)))
        while not task.is_refused and "w" not in task.state.arrays:
            self.server.step([task])
        self.check_task(task)
        return task.state.arrays

    def check_task(self, task: Solve) -> None:
        """Raise if a client refused what the solver needs."""
        check_refused(task.state.arrays["refused"], self.data.n_clients, self.min_rows, self.what)

    def at(self, flat: Float, working: Array, squares: bool = False, sites: bool = False) -> list[Arrays]:
        """Loss, gradient and Hessian on the working set: the mean over all rows, or one per site."""
        self.check_width(len(working))
        question = {"w": flat, "working": working} | ({"squares": np.ones(1)} if squares else {})
        folds: Sequence[Fold | None] = site_folds(self.data) if sites else [None]
        asker = ProxNewton(self.min_rows)
        totals = self.server.ask([Question(asker, self.problem, question, fold) for fold in folds])
        refused = {name: np.array(0) for name in ("refused_rows", "refused_columns")}
        for total in totals:
            refused = {name: count + total.get(name, 0) for name, count in refused.items()}
        check_answers(refused, self.data.n_clients, self.min_rows, self.what)
        return totals

    def check_width(self, width: int | None = None) -> None:
        """Refuse matrices that are too large to ask for."""
        p = self.problem.layout.n_coefficients if width is None else width
        if p > MOST_FEATURES + 1:
            raise ValueError(
                f"{self.what} needs a {p} × {p} matrix from every site; the limit is {MOST_FEATURES} features"
            )


def site_folds(data: FederatedData) -> list[Fold]:
    """Questions about one site's rows at a time, all of them in one round."""
    return [Fold(BySite(), k, held_out=True) for k in range(data.n_clients)]
