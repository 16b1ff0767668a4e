"""The rounds of exact solvers: ask, sum, update, until a certificate says enough.

Several solves can share their rounds: the folds of a cross-validation are asked at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unpooled._interrupt import recorded
from unpooled._ledger import Ledger
from unpooled.algorithms.base import State
from unpooled.data.folds import Fold
from unpooled.exact.base import ExactSolver
from unpooled.exact.certificate import Certificate
from unpooled.exact.clients import Question, Respondents
from unpooled.problem import BoundProblem

PATIENCE = 40  # rounds without a smaller gap
FALL = 1e-12  # of the objective in so many rounds that is more than rounding, relative


@dataclass
class Solve:
    """One problem on its way to its optimum."""

    solver: ExactSolver
    problem: BoundProblem
    state: State
    fold: Fold | None = None
    certificate: Certificate | None = None
    history: list[tuple[int, float, float]] = field(default_factory=list)

    @property
    def is_refused(self) -> bool:
        """Whether a client has refused what this solver needs."""
        return bool(self.state.arrays["refused"].any())

    @property
    def is_stalled(self) -> bool:
        """Whether the last rounds have brought nothing: rounding is reached, or there is no optimum.

        Neither a smaller gap nor, by more than rounding, a smaller objective: a gap can rest for long while
        the objective still falls.
        """
        if len(self.history) <= PATIENCE:
            return False
        _, objectives, gaps = np.array(self.history).T
        before, now = objectives[:-PATIENCE].min(), objectives[-PATIENCE:].min()
        falls = now < before - FALL * abs(before)
        return bool(gaps[-PATIENCE:].min() >= gaps[:-PATIENCE].min() and not falls)

    def is_done(self, tol: float) -> bool:
        """Whether the certificate is good enough, or nothing can become of it."""
        good = self.certificate is not None and self.certificate.relative <= tol
        if good and self.solver.wants_proof(self.problem, self.state):
            good = False
        return good or self.is_refused or self.is_stalled or self.solver.is_final(self.state)

    def certify(self, round: int) -> None:
        """The certificate of the current state, which goes into the history."""
        if not self.is_refused and "w" in self.state.arrays:
            self.certificate = self.solver.certificate(self.problem, self.state)
            self.history.append((round, self.certificate.objective, self.certificate.gap))


@dataclass
class Server:
    """Asks the clients of an engine and keeps the ledger."""

    clients: Respondents
    ledger: Ledger = field(default_factory=Ledger)

    def ask(self, questions: Sequence[Question]) -> list[Any]:
        """One round; an interrupt that got lost in it is raised after it."""
        with recorded() as interrupt:
            totals, traffic = self.clients.ask(questions)
            interrupt.check()
        self.ledger = self.ledger.after_answers(
            traffic.clients, traffic.floats_up, traffic.floats_down, traffic.kinds
        )
        return list(totals)

    def step(self, solves: Sequence[Solve]) -> None:
        """One round for all of them."""
        for solve in solves:
            solve.state = solve.solver.propose(solve.problem, solve.state)
        questions = [
            Question(s.solver, s.problem, s.solver.broadcast(s.problem, s.state), s.fold) for s in solves
        ]
        for solve, total in zip(solves, self.ask(questions), strict=True):
            solve.state = solve.solver.server_update(solve.problem, solve.state, total)
        exchange(solves)
        for solve in solves:
            solve.certify(self.ledger.rounds)

    def run(self, solves: Sequence[Solve], tol: float, max_rounds: int) -> None:
        """Rounds until every solve is done, or until so many rounds are in the ledger."""
        with recorded() as interrupt:
            while self.ledger.rounds < max_rounds:
                interrupt.check()
                open_ones = [solve for solve in solves if not solve.is_done(tol)]
                if not open_ones:
                    return
                self.step(open_ones)
            interrupt.check()


def exchange(solves: Sequence[Solve]) -> None:
    """Solves of the same rows learn from each other's answers."""
    alike: dict[Fold | None, list[Solve]] = {}
    for solve in solves:
        alike.setdefault(solve.fold, []).append(solve)
    for group in alike.values():
        for solve, state in zip(group, group[0].solver.exchange([s.state for s in group]), strict=True):
            solve.state = state


def columns(history: list[tuple[int, float, float]]) -> dict[str, np.ndarray[Any, Any]]:
    """The history as one array a column."""
    table = np.array(history, dtype=np.float64).reshape(-1, 3)
    return {"round": table[:, 0].astype(np.int64), "objective": table[:, 1], "gap": table[:, 2]}
