"""The result of a run: the model, how it was reached, what it cost, how it ended."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from unpooled.algorithms.base import State
from unpooled.arrays import Array, Arrays, Float
from unpooled.ledger import Ledger
from unpooled.privacy.spent import Spent
from unpooled.wording import counted


class Status(StrEnum):
    """How a run ended."""

    COMPLETED = "completed"
    DIVERGED = "diverged"
    INTERRUPTED = "interrupted"
    EXHAUSTED = "exhausted"


@dataclass(eq=False, repr=False)
class Run:
    """What ``simulate`` returns and ``load`` reads back.

    ``w`` has the shape of the coefficients, ``intercept`` is None where the problem has none.
    ``history`` holds one array a column: round, objective, and the metrics. ``message`` says in a sentence
    how the run ended; ``notes`` what was chosen for it. ``state`` and ``memory`` are where the server and
    the clients stand, which is what a resumed run starts from. ``privacy`` is what a private run has spent.
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

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the run to one file, whole or not at all; ``unpooled.load`` reads it."""
        from unpooled.runfile import save

        return save(self, path)

    def summary(self) -> str:
        """The run in a few lines of text."""
        algorithm = self.settings["algorithm"]["name"]
        objective = self.history["objective"]
        last = f", objective {objective[-1]:.6g}" if len(objective) else ""
        lines = [f"Run({algorithm}: {self.status} after {counted(self.ledger.rounds, 'round')}{last})"]
        lines += [f"  {self.message}", f"  {self.ledger}, {self.seconds:.2f} s"]
        return "\n".join(lines + [f"  {note}" for note in self.notes])

    def __repr__(self) -> str:
        return self.summary()
