"""The rounds of a run: sample a cohort, let it work, average, update. Everything else stands around this."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from unpooled._ledger import Ledger, Traffic
from unpooled.aggregation.base import Aggregate, Mean
from unpooled.algorithms.base import Algorithm, State
from unpooled.engines.local.engine import Memory
from unpooled.engines.task import Task
from unpooled.kernels.arrays import Array
from unpooled.kernels.draws import cohort as sample_cohort
from unpooled.problem import BoundProblem

if TYPE_CHECKING:
    from unpooled.aggregation.privacy.private_mean import PrivateMean
    from unpooled.data.base import Data

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
    """A server with its clients. ``rounds`` is a generator: stopping early is ``break``."""

    task: Task
    data: Data
    clients: Any
    cohort: int | None
    weighting: str
    position: Position
    aggregate: Aggregate = field(default_factory=Mean)
    private: PrivateMean | None = None

    @property
    def algorithm(self) -> Algorithm:
        """What is run."""
        return self.task.algorithm

    @property
    def problem(self) -> BoundProblem:
        """What it is run on."""
        return self.task.problem

    @property
    def state(self) -> State:
        """Where the server stands."""
        return self.position.state

    def memory(self) -> Array:
        """What all clients remember."""
        self._settle()
        return np.array(self.clients.memory)

    def _settle(self) -> None:
        """Let the last cohort remember its round; to do so twice changes nothing."""
        if self.position.memory is not None:
            self.clients.remember(self.position.memory)

    def rounds(self, until: int) -> Iterator[State]:
        """Do rounds until so many are done in all, yielding the state after each."""
        while self.state.round < until:
            yield self.step()

    def step(self, chosen: Array | None = None) -> State:
        """One round, of the clients that were drawn for it before, or are now."""
        self._settle()
        algorithm, state = self.task.algorithm, self.position.state
        r = state.round
        problem = algorithm.problem_at(self.task.problem, r)
        chosen = self.draw() if chosen is None else chosen
        weigh = self._weights if self.private is None else self.private.weights
        aggregate = self.aggregate if self.private is None else self.private.aggregate
        sent = algorithm.broadcast(problem, state)
        down = {name: vector.astype(self.task.dtype) for name, vector in sent.items()}
        gathered = self.clients.round(problem, r, down, chosen, weigh, aggregate)
        mean = gathered.mean if self.private is None else self.private.noised(gathered.mean, r)
        state = algorithm.server_update(problem, state, mean, gathered.participation)
        numbers = len(chosen) * len(down) * problem.layout.size
        sent_down = Traffic(numbers, numbers * self.task.dtype.itemsize)
        ledger = self.position.ledger.after_round(len(gathered.present), gathered.sent, sent_down)
        self.position = Position(state, ledger, gathered.memory)
        return state

    def draw(self) -> Array:
        """The clients of the next round: by the seed, or in secret, and then others each time."""
        round = self.state.round
        if self.private is not None:
            return self.private.cohort(round)
        return sample_cohort(self.task.seed, round, self.data.n_clients, self.cohort)

    def _weights(self, chosen: Array) -> tuple[Array, float]:
        """The weights of those who took part, and the factor that turns the mean into Σ_k π_k up_k."""
        pi = self.data.weights[chosen]
        if self.weighting == "renormalised":
            total = np.add.reduce(pi)  # as pi.sum(), without what stands around it
            return pi / total, float(total)
        fraction = len(chosen) / self.data.n_clients
        return pi / fraction, fraction
