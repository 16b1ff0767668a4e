"""The stochastic gradient oracle of a client: ∇f(w; ξ), ξ the minibatch of (seed, round, client, step)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel, method
from unpooled.kernels.draws import draw
from unpooled.losses.base import gradient

workspace = method("workspace")
stochastic_gradient = method("stochastic_gradient", borrows=True)


class Draws(NamedTuple):
    """How minibatches are drawn: from which rows, how many (0: all of them), under which seed and round."""

    offsets: Array
    n_outputs: int
    seed: Any
    batch_size: int
    round: int


class Oracle(NamedTuple):
    """The clients' rows, the loss, and how minibatches are drawn."""

    loss: Any
    rows: Any
    draws: Draws

    @kernel
    def workspace(self, client: int, w: Array) -> Any:
        """Scratch for one client: the row numbers, the batch, the margins."""
        draws = self.draws
        n = draws.offsets[client + 1] - draws.offsets[client]
        b = n if draws.batch_size == 0 else min(n, draws.batch_size)
        return np.arange(n), np.arange(b), np.empty((b, draws.n_outputs), w.dtype)

    @kernel
    def stochastic_gradient(self, client: int, step: int, w: Array, work: Any, G: Array) -> None:
        """G ← the mean gradient at w over this step's minibatch."""
        identity, batch, Z = work
        first = self.draws.offsets[client]
        if batch.size < identity.size:
            draw(self.draws.seed, step, client, self.draws.round, identity, batch)
            for i in range(batch.size):
                batch[i] += first
        else:
            for i in range(batch.size):
                batch[i] = first + i
        gradient(self.loss, self.rows, batch, w, Z, G)


class PlainOracle(NamedTuple):
    """The same for a loss in plain NumPy."""

    loss: Any
    rows: Any
    draws: Draws

    def workspace(self, client: int, w: Array) -> Any:
        """As the oracle's, uncompiled."""
        return Oracle.workspace.py_func(self, client, w)

    def stochastic_gradient(self, client: int, step: int, w: Array, work: Any, G: Array) -> None:
        """As the oracle's, uncompiled."""
        Oracle.stochastic_gradient.py_func(self, client, step, w, work, G)
