"""The four shapes of the paper's experiments, with its settings of Fast-FedDA."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import unpooled as up
from benchmarks.images import characters


@dataclass(frozen=True)
class Shape:
    """One experiment: how its data are made, and what is run on them. ``rounds`` is the length of a turn,
    of which a run's beginning should take no part that counts.
    """

    name: str
    make: Callable[[], up.FederatedData]
    problem: up.Problem
    algorithm: up.FastFedDA
    cohort: int
    batch_size: int
    rounds: int
    gaussian_start: bool = False

    @cached_property
    def data(self) -> up.FederatedData:
        """The data in float32, made once."""
        return self.make().astype("float32")

    def start(self, data: up.FederatedData) -> NDArray[np.float64] | None:
        """w_0; None is zero."""
        return up.datasets.gaussian_start(data, seed=0) if self.gaussian_start else None


def lasso() -> Shape:
    """64 clients × 128 rows, p = 1024."""
    return Shape(
        name="lasso",
        make=lambda: up.datasets.sparse_regression(seed=0),
        problem=up.Problem(up.Squared(), up.L1(0.5**5)),
        algorithm=_uniform(mu=0.1, gamma=550, local_steps=10),
        cohort=10,
        batch_size=10,
        rounds=400,
        gaussian_start=True,
    )


def low_rank() -> Shape:
    """64 clients × 128 matrices of 32 × 32."""
    return Shape(
        name="low rank",
        make=lambda: up.datasets.low_rank_regression(seed=0),
        problem=up.Problem(up.Squared(), up.Nuclear(0.1)),
        algorithm=_uniform(mu=0.1, gamma=550, local_steps=10),
        cohort=10,
        batch_size=10,
        rounds=40,
        gaussian_start=True,
    )


def emnist10(path: Path | None = None) -> Shape:
    """367 writers × about 100 digits, 784 × 10; MNIST by writer where there is a path to it."""
    if path is None:
        return _emnist("EMNIST-10", lambda: characters(0, 367, 100, 10), 10, 40, 10)
    return _emnist("EMNIST-10", lambda: up.datasets.mnist_by_writer(path)[0], 10, 40, 10)


def emnist62() -> Shape:
    """379 writers × about 194 characters, 784 × 62."""
    return _emnist("EMNIST-62", lambda: characters(0, 379, 194, 62), 62, 10, 8)


def paper_shapes(path: Path | None = None) -> list[Shape]:
    """All four."""
    return [lasso(), low_rank(), emnist10(path), emnist62()]


def _emnist(
    name: str, make: Callable[[], up.FederatedData], classes: int, local_steps: int, rounds: int
) -> Shape:
    return Shape(
        name=name,
        make=make,
        problem=up.Problem(up.Softmax(classes), up.L1(1e-4)),
        algorithm=_uniform(mu=1e-3, gamma=25, local_steps=local_steps),
        cohort=36,
        batch_size=25,
        rounds=rounds,
    )


def _uniform(mu: float, gamma: float, local_steps: int) -> up.FastFedDA:
    """The paper's weights α_t = 1; with a = ∞ no number is left to be chosen."""
    return up.FastFedDA(mu=mu, gamma=gamma, a=np.inf, schedule="uniform", local_steps=local_steps)
