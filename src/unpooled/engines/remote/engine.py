"""The engine of data whose rows are elsewhere."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unpooled.engines.remote.clients import RemoteClients
from unpooled.engines.remote.oracles import RemoteOracles
from unpooled.engines.task import Task
from unpooled.kernels.arrays import Array

if TYPE_CHECKING:
    from unpooled.engines.remote.data import RemoteData


@dataclass(frozen=True)
class Remote:
    """Run where the rows of a ``RemoteData`` are; the parameters are those of ``RemoteClients``."""

    minimum: int | None = None
    retries: int = 1
    keeps: str = "desk"
    norm_bound: float = math.inf

    def __post_init__(self) -> None:
        if self.keeps not in ("desk", "server"):
            raise ValueError(f"keeps must be 'desk' or 'server', got {self.keeps!r}")
        if self.minimum is not None and self.minimum < 1:
            raise ValueError(f"minimum must be a whole number ≥ 1, got {self.minimum!r}")
        if self.retries < 0 or not self.norm_bound > 0.0:
            raise ValueError(f"retries must be ≥ 0 and norm_bound positive, got {self}")

    def open(self, task: Task, data: RemoteData, memory: Array | None = None) -> RemoteClients:
        """The clients of a run, ready for its rounds."""
        return RemoteClients(task, data, memory, **dataclasses.asdict(self))

    def open_oracles(self, data: RemoteData) -> RemoteOracles:
        """The clients of an exact solver, ready for its questions."""
        return RemoteOracles(dataclasses.replace(data, retries=self.retries))
