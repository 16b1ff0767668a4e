"""Those who do the same work: one protocol, one module each, imported when it is asked for."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.work import Work


class Contender(Protocol):
    """Fast-FedDA on the work's batches, on so many threads where that can be chosen."""

    def __init__(self, work: Work, threads: int) -> None: ...

    def run(self, rounds: int) -> NDArray[np.float64]:
        """The server's iterate (p, C) after so many rounds from the start."""


@dataclass(frozen=True)
class Entry:
    """A contender by name. ``package`` is what it needs, ``pip`` how to get it.

    ``takes_all`` is for one that has all threads and uses as many as it likes.
    """

    name: str
    module: str
    package: str
    pip: str
    takes_all: bool = False

    @property
    def is_installed(self) -> bool:
        """Whether its package is there; nothing is imported."""
        return importlib.util.find_spec(self.package) is not None

    @property
    def excuse(self) -> str:
        """What the table says where it is not."""
        return f"not installed: pip install '{self.pip}'"

    def load(self) -> type[Contender]:
        """The contender's class."""
        found: type[Contender] = importlib.import_module(f"benchmarks.contenders.{self.module}").Solver
        return found


CONTENDERS = (
    Entry("NumPy loop", "numpy_loop", "numpy", "numpy"),
    Entry("NumPy batched", "numpy_batched", "numpy", "numpy"),
    Entry("JAX", "jax_scan", "jax", "jax", takes_all=True),
    Entry("JAX on every core", "jax_shared", "jax", "jax", takes_all=True),
    Entry("PyTorch", "torch_batched", "torch", "torch"),
)
FLOWER = Entry("Flower", "flower_simulation", "ray", "flwr[simulation]")
