"""The straightforward way: client after client, step after step, with BLAS products of a minibatch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from benchmarks.contenders.numpy_terms import prox, residual
from benchmarks.work import Round, Work
from unpooled.kernels.arrays import Array


class Solver:
    """A loop over the clients; BLAS has the threads."""

    def __init__(self, work: Work, threads: int):
        self.work, self.threads = work, threads
        self.X, self.y, self.blas = work.X, work.data.y, ThreadpoolController()

    def run(self, rounds: int) -> NDArray[np.float64]:
        """The server's iterate (p, C) after so many rounds from the start."""
        work = self.work
        h, last = work.dual_start, work.first
        with self.blas.limit(limits=self.threads, user_api="blas"):
            for now in work.rounds[:rounds]:
                w, total = prox(work, h, last), np.zeros_like(h)
                for s, weight in enumerate(now.weights.tolist()):
                    total += weight * self._client(now, s, h, w)
                h, last = total, now.steps[-1]
            return prox(work, h, last).astype(np.float64)

    def _client(self, now: Round, s: int, h: Array, w: Array) -> Array:
        """The client's dual vector after its local steps."""
        work, h, b = self.work, h.copy(), now.rows.shape[-1]
        for j, step in enumerate(now.steps):
            rows = now.rows[s, j]
            X = self.X[rows]
            Z = residual(work, X @ w, self.y[rows])
            Z *= step.alpha / b
            h += X.T @ Z
            h -= (0.5 * step.alpha * work.mu) * w
            if j + 1 < len(now.steps):
                w = prox(work, h, step)
        return h
