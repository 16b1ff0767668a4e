"""The boundary between a run and wherever its clients are.

    clients = engine.open(task, data, memory, say)       the clients of a run
    gathered = clients.round(sent, weigh, aggregate)     one round: broadcast, local loops, their mean
    clients.remember(gathered.memory)                    once the round counts

An ``Engine`` opens clients and knows no algorithm; an algorithm knows no engine. ``Local`` computes in this
process, ``Ray`` and ``Remote`` send requests over a ``Transport``. The same task on the same ``Data`` gives
the same bits on each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from unpooled._ledger import Traffic
from unpooled.data.base import Data
from unpooled.engines.remote.messages import Transport
from unpooled.exact.clients import QuestionEngine
from unpooled.kernels.arrays import Array, Arrays

if TYPE_CHECKING:
    from unpooled.aggregation.base import Aggregate
    from unpooled.algorithms.base import Algorithm
    from unpooled.problem import BoundProblem

__all__ = [
    "Broadcast",
    "Clients",
    "Data",
    "DivergenceError",
    "Engine",
    "Gathered",
    "Memory",
    "Say",
    "Task",
    "Transport",
    "Weigh",
    "say_nothing",
]

Memory = tuple[Array, Array]
"""Clients, and what each of them is to remember."""

Say = Callable[[str], None]
"""Shows a sentence to whoever watches the run."""

Weigh = Callable[[Array], tuple[Array, float]]
"""The weights of the clients that took part, and the factor that turns their mean into Σ_k π_k up_k."""


@dataclass(frozen=True)
class Task:
    """What the clients of a run compute: an algorithm on a problem.

    ``seed`` draws the minibatches, ``dtype`` is the precision of the vectors that cross.
    """

    algorithm: Algorithm
    problem: BoundProblem
    seed: int
    batch_size: int | None  # rows of a local step; None for all
    dtype: np.dtype[Any]


class Broadcast(NamedTuple):
    """What the server sends in a round, and the ``cohort`` that it sends it to."""

    round: int
    problem: BoundProblem  # of this round: a homotopy changes λ from round to round
    down: Arrays
    cohort: Array


class Gathered(NamedTuple):
    """What a round's uploads come to.

    ``mean`` is over the clients ``present``; ``participation`` · mean = Σ_k π_k up_k. ``memory`` is what the
    clients remember once the round counts, None where they remember nothing. ``sent`` is what they uploaded.
    """

    mean: Arrays
    participation: float
    present: Array
    memory: Memory | None
    sent: Traffic


class DivergenceError(ArithmeticError):
    """A client's upload is not finite."""

    def __init__(self, client: int):
        super().__init__(client)
        self.client = client


class Clients(Protocol):
    """The clients of a run, wherever they are."""

    @property
    def memory(self) -> Array:
        """What the clients remember, or the rounds it is from, one row for each client: saved with a run."""

    def round(self, sent: Broadcast, weigh: Weigh, aggregate: Aggregate) -> Gathered:
        """Send the broadcast to its cohort and combine the uploads.

        Raises ``DivergenceError`` where an upload is not finite.
        """

    def remember(self, memory: Memory) -> None:
        """Keep what clients computed for themselves in a round that counts. Doing so twice is harmless."""

    def notes(self) -> list[str]:
        """Sentences about clients that were left out of rounds."""


class Engine(QuestionEngine, Protocol):
    """Where clients run. It opens clients for the rounds of an algorithm, or for an exact solver."""

    def open(self, task: Task, data: Any, memory: Array | None = None, say: Say = ...) -> Clients:
        """The clients of ``data`` (of the kind that the engine takes), ready for rounds.

        ``memory`` is that of the run that this one resumes. The clients ``say`` what happens on the way.
        """


def say_nothing(sentence: str) -> None:
    """Nobody watches."""
