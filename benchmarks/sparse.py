"""Sparse features at scale: the time of a round against the non-zeros of a row and against p, and the memory.

Logistic regression with an ℓ1 penalty by Fast-FedDA: 100 of 10 000 clients a round, ten local steps on
minibatches of ten of a client's 20 rows. With p = 10⁶ and 1000 non-zeros a row (0.1 %) the data are 1.6 GB:
a float32 and an int32 for each non-zero; all that are timed together are 3 GB.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array

import unpooled as up
from benchmarks.growth import exponent, memory, round_seconds
from benchmarks.options import Options
from benchmarks.row import Row
from benchmarks.shapes import Shape

SECTION = "sparse"
CLIENTS, ROWS = 10_000, 20
FEATURES, NONZEROS = 10**6, 1000
FEWER_CLIENTS = 1000  # where they are not what is measured: in quick mode, and where p grows
FURTHER = 30  # local steps whose time is that of the steps themselves, without the round around them
BLOCK = 2_000_000  # numbers drawn at a time


@dataclass(frozen=True)
class Size:
    """Clients, features, and non-zeros a row."""

    clients: int = CLIENTS
    features: int = FEATURES
    nonzeros: int = NONZEROS

    def data(self) -> up.FederatedData:
        """Rows with one entry in each of ``nonzeros`` stretches of the features: none occurs twice."""
        rng, n, stretch = np.random.default_rng(0), self.clients * ROWS, self.features // self.nonzeros
        columns, values = np.empty((n, self.nonzeros), np.int32), np.empty((n, self.nonzeros), np.float32)
        truth, y = (rng.random(self.features) < 0.02).astype(np.float32), np.empty(n, np.float32)
        step = max(1, BLOCK // self.nonzeros)
        for block in (slice(start, start + step) for start in range(0, n, step)):
            shape = values[block].shape
            columns[block] = np.arange(self.nonzeros) * stretch + rng.integers(0, stretch, shape)
            values[block] = rng.standard_normal(shape, dtype=np.float32)
            y[block] = np.einsum("ij,ij->i", values[block], truth[columns[block]]) > 0
        starts = np.arange(0, values.size + 1, self.nonzeros, dtype=np.int32)
        X = csr_array((values.ravel(), columns.ravel(), starts), shape=(n, self.features))
        return up.FederatedData.from_arrays(X, y, np.repeat(np.arange(self.clients), ROWS))

    def shape(self) -> Shape:
        """What is run on them."""
        return Shape(
            name=str(self),
            make=self.data,
            problem=up.Problem(up.Logistic(), up.L1(1e-4), intercept=True),
            algorithm=up.FastFedDA(mu=1e-3, gamma=0.25 * self.nonzeros, local_steps=10, a=np.inf),
            cohort=100,
            batch_size=10,
            rounds=10,
        )


def rows(options: Options) -> Iterator[Row]:
    """Exponents of the non-zeros and of p, a round's time at 0.1 % non-zeros, and the memory a run needs."""
    clients = FEWER_CLIENTS if options.quick else CLIENTS
    nonzeros = (125, 250, 500, NONZEROS)
    seconds = round_seconds([Size(clients, nonzeros=s).shape() for s in nonzeros], options)
    yield exponent(SECTION, f"a round ∝ the non-zeros a row, p = 10⁶, {clients} clients", nonzeros, seconds)
    yield Row(SECTION, f"a round, p = 10⁶, 0.1 % non-zeros, {clients} clients", seconds[-1], "s")
    yield from _against_p(options)
    yield memory(SECTION, MEMORY, (80, 160) if options.quick else (400, 800, 1600))


def _against_p(options: Options) -> Iterator[Row]:
    """Of a round, in which the server passes over vectors of length p, and of further local steps alone."""
    features = (FEATURES // 4, FEATURES, 4 * FEATURES)
    shapes = [Size(FEWER_CLIENTS, p).shape() for p in features]
    found = round_seconds([*shapes, *map(_longer, shapes)], options)
    rounds, longer = found[: len(shapes)], found[len(shapes) :]
    further = [b - a for a, b in zip(rounds, longer, strict=True)]
    yield exponent(SECTION, f"a round ∝ p, {NONZEROS} non-zeros a row", features, rounds)
    yield exponent(SECTION, f"{FURTHER} further local steps ∝ p", features, further)


def _longer(shape: Shape) -> Shape:
    """The same rounds on the same data, with further local steps."""
    algorithm = replace(shape.algorithm, local_steps=shape.algorithm.local_steps + FURTHER)
    return replace(shape, name=f"{shape.name}, longer", make=lambda: shape.data, algorithm=algorithm)


MEMORY = """
from benchmarks import sparse
from benchmarks.precision import DEFAULT
clients = int(sys.argv[1]) * 10**6 // (8 * sparse.ROWS * sparse.NONZEROS)
shape = sparse.Size(clients).shape()
DEFAULT.engine(DEFAULT.work(shape)).run(shape.rounds)
"""
