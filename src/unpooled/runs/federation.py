"""The rounds of a run: sample a cohort, broadcast, combine the uploads, update the server's state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from unpooled._ledger import Ledger, Traffic
from unpooled.aggregation.base import Aggregate, Mean
from unpooled.algorithms.base import Algorithm, State
from unpooled.engines.base import Broadcast, Clients, Data, Gathered, Memory, Task
from unpooled.kernels.arrays import Array
from unpooled.kernels.draws import cohort as sample_cohort
from unpooled.problem import BoundProblem

if TYPE_CHECKING:
    from unpooled.aggregation.privacy.private_mean import PrivateMean

WEIGHTINGS = ("renormalised", "unbiased")


@dataclass(frozen=True)
class Position:
    """Where a run stands: the server's state, the ledger, and what the last cohort has yet to remember.

    It changes in one assignment, so that an interrupt finds all of it before a round or all of it after.
    """

    state: State
    ledger: Ledger
    memory: Memory | None = None


@dataclass
class Federation:
    """A server with its clients. ``rounds`` is a generator: stopping early is ``break``.

    A round is ``ask``, the clients' work, and ``update``. Where somebody else carries the messages, these are
    called one by one; ``step`` is all three.
    """

    task: Task
    data: Data
    clients: Clients
    cohort: int | None
    weighting: str
    position: Position
    aggregate: Aggregate = field(default_factory=Mean)
    private: PrivateMean | None = None

    @property
    def algorithm(self) -> Algorithm:
        """The algorithm."""
        return self.task.algorithm

    @property
    def problem(self) -> BoundProblem:
        """The problem that it solves."""
        return self.task.problem

    @property
    def state(self) -> State:
        """The server's state."""
        return self.position.state

    def memory(self) -> Array:
        """What all clients remember."""
        self._settle()
        return np.array(self.clients.memory)

    def _settle(self) -> None:
        """Let the last cohort remember its round. Doing so twice changes nothing."""
        if self.position.memory is not None:
            self.clients.remember(self.position.memory)

    def rounds(self, until: int) -> Iterator[State]:
        """Run rounds until ``until`` are done in all, yielding the state after each."""
        while self.state.round < until:
            yield self.step()

    def step(self) -> State:
        """One round."""
        sent = self.ask()
        return self.update(sent, self.clients.round(sent, self.weigh, self.combined_by))

    def ask(self) -> Broadcast:
        """Draw the cohort of the next round: who is asked, and what they are sent."""
        self._settle()
        algorithm, state = self.task.algorithm, self.position.state
        problem = algorithm.problem_at(self.task.problem, state.round)
        sent = algorithm.broadcast(problem, state)
        down = {name: vector.astype(self.task.dtype) for name, vector in sent.items()}
        return Broadcast(state.round, problem, down, self.draw())

    def update(self, sent: Broadcast, gathered: Gathered) -> State:
        """Move the server by what the uploads of a round come to."""
        mean = gathered.mean if self.private is None else self.private.noised(gathered.mean, sent.round)
        state = self.algorithm.server_update(sent.problem, self.state, mean, gathered.participation)
        numbers = len(sent.cohort) * len(sent.down) * sent.problem.layout.size
        sent_down = Traffic(numbers, numbers * self.task.dtype.itemsize)
        ledger = self.position.ledger.after_round(len(gathered.present), gathered.sent, sent_down)
        self.position = Position(state, ledger, gathered.memory)
        return state

    @property
    def combined_by(self) -> Aggregate:
        """What combines the uploads."""
        return self.aggregate if self.private is None else self.private.aggregate

    def draw(self) -> Array:
        """The clients of the next round: drawn by the seed, or by a secret one where the run is private."""
        round = self.state.round
        if self.private is not None:
            return self.private.cohort(round)
        return sample_cohort(self.task.seed, round, self.data.n_clients, self.cohort)

    def weigh(self, present: Array) -> tuple[Array, float]:
        """The weights of those who took part, and the factor that turns their mean into Σ_k π_k up_k."""
        if self.private is not None:
            return self.private.weights(present)
        pi = self.data.weights[present]
        if self.weighting == "renormalised":
            total = np.add.reduce(pi)  # as pi.sum(), with less overhead
            return pi / total, float(total)
        fraction = len(present) / self.data.n_clients
        return pi / fraction, fraction
