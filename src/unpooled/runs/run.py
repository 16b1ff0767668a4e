"""The result of a run: the model, how it was reached, what it cost, how it ended."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from unpooled._ledger import Ledger
from unpooled._wording import counted
from unpooled.aggregation.privacy.spent import Spent
from unpooled.algorithms.base import State
from unpooled.exact.certificate import Certificate
from unpooled.kernels.arrays import Array, Arrays, Float


class Status(StrEnum):
    """How a run ended."""

    COMPLETED = "completed"
    DIVERGED = "diverged"
    INTERRUPTED = "interrupted"
    EXHAUSTED = "exhausted"


@dataclass(frozen=True, eq=False)
class Best:
    """The recorded iterate with the smallest objective, and the round after which it was recorded."""

    round: int
    objective: float
    w: Float = field(repr=False)
    intercept: Any = None


@dataclass(eq=False, repr=False)
class Run:
    """What ``simulate`` returns and ``load`` reads back.

    ``w`` has the shape of the coefficients, ``intercept`` is None where the problem has none.
    ``history`` holds one array a column: round, objective, and the metrics. ``message`` says in a sentence
    how the run ended; ``notes`` what was chosen for it. ``state`` and ``memory`` are where the server and
    the clients stand, which is what a resumed run starts from. ``privacy`` is what a private run has spent.
    ``best`` is the recorded iterate with the smallest objective, None where none was recorded.
    ``certificate`` says how far w is from the optimum, where the run was asked to certify it. ``findings``
    are the notes that its end gave rise to; a run that goes on from this one does not take them over.
    """

    w: Float
    intercept: Any
    status: Status
    message: str
    history: Arrays
    ledger: Ledger
    settings: dict[str, Any]
    notes: list[str]
    versions: dict[str, str]
    seed: int
    seconds: float
    state: State = field(repr=False)
    memory: Array = field(repr=False)
    privacy: Spent | None = None
    best: Best | None = field(default=None, repr=False)
    certificate: Certificate | None = None
    findings: list[str] = field(default_factory=list, repr=False)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the run to one file, whole or not at all; ``unpooled.load`` reads it."""
        from unpooled.runs.runfile import save

        return save(self, path)

    def summary(self) -> str:
        """The run in a few lines of text."""
        algorithm = self.settings["algorithm"]["name"]
        objective = self.history["objective"]
        last = f", objective {objective[-1]:.6g}" if len(objective) else ""
        done = self.ledger.rounds if self.status == Status.DIVERGED else self.state.round
        lines = [f"Run({algorithm}: {self.status} after {counted(done, 'round')}{last})"]
        setup = self.ledger.setup_rounds
        before = f"{counted(setup, 'set-up round')} to choose its numbers, then " if setup else ""
        lines += [f"  {self.message}", f"  {before}{self.ledger}, {self.seconds:.2f} s"]
        if self.certificate is not None:
            lines.append(f"  {self.certificate}, by one more round, counted above")
        return "\n".join(lines + [f"  {note}" for note in self.notes])

    def __repr__(self) -> str:
        return self.summary()
