"""Folds: the rows that a question covers. Each site assigns its own rows, which no one else sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from unpooled._validation import ClientId
from unpooled.kernels.arrays import Array
from unpooled.kernels.draws import own_draws


class Folds(Protocol):
    """A rule that gives every row a fold."""

    def of(self, k: int, name: ClientId, n_rows: int) -> Array:
        """The folds of the rows of client k."""


class Fold(NamedTuple):
    """Rows that a question is about: those in a fold, or those not in it (``held_out`` False)."""

    folds: Folds
    number: int
    held_out: bool


@dataclass(frozen=True)
class Dealt:
    """Each client shuffles its rows and deals them into ``count`` folds, beginning at one of its own.

    It deals them into fewer folds where one would get fewer than ``least`` rows, and stays whole in one
    where two would. A client's folds depend on the seed and its id, not on the other clients.
    """

    count: int
    seed: int
    least: int = 0

    def of(self, k: int, name: ClientId, n_rows: int) -> Array:
        """See Folds."""
        draws = own_draws(name, self.seed, self.count)
        parts = min(self.count, max(1, n_rows // self.least)) if self.least else self.count
        rank = draws.permutation(n_rows) % parts
        return np.asarray((rank + draws.integers(self.count)) % self.count)


@dataclass(frozen=True)
class BySite:
    """Every site is a fold."""

    def of(self, k: int, name: ClientId, n_rows: int) -> Array:
        """See Folds."""
        return np.full(n_rows, k)


@dataclass(frozen=True)
class Halved:
    """Two halves of every client's rows, numbers 0 and 1, the ``pair``-th of a sequence of such pairs.

    Where a client's rows are odd in number, one is in neither: its number is 2.
    """

    seed: int
    pair: int

    def of(self, k: int, name: ClientId, n_rows: int) -> Array:
        """See Folds."""
        draws = own_draws(name, self.seed)
        for _ in range(self.pair + 1):
            rank = draws.permutation(n_rows)
        return np.where(rank < n_rows // 2, 0, np.where(rank < 2 * (n_rows // 2), 1, 2))


@dataclass(frozen=True, eq=False)
class Given:
    """The fold of each row of the data, client after client, as the caller gave them."""

    numbers: Array
    offsets: Array

    def of(self, k: int, name: ClientId, n_rows: int) -> Array:
        """See Folds."""
        return self.numbers[self.offsets[k] : self.offsets[k + 1]]
