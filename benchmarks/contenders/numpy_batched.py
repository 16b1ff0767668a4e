"""All clients of a cohort in one stack of matrices: fewer, larger NumPy calls."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from benchmarks.contenders.numpy_terms import prox, residual
from benchmarks.work import Round, Work
from unpooled.kernels.arrays import Array


class Solver:
    """Stacked products over the clients; BLAS has the threads."""

    def __init__(self, work: Work, threads: int):
        self.work, self.threads = work, threads
        self.X, self.y, self.blas = work.X, work.data.y, ThreadpoolController()

    def run(self, rounds: int) -> NDArray[np.float64]:
        """The server's iterate (p, C) after so many rounds from the start."""
        work = self.work
        h, last = work.dual_start, work.first
        with self.blas.limit(limits=self.threads, user_api="blas"):
            for now in work.rounds[:rounds]:
                H = self._cohort(now, h, prox(work, h, last))
                h = np.tensordot(now.weights.astype(h.dtype), H, axes=1)
                last = now.steps[-1]
            return prox(work, h, last).astype(np.float64)

    def _cohort(self, now: Round, h: Array, w: Array) -> Array:
        """The clients' dual vectors (S, p, C) after their local steps."""
        work, b = self.work, now.rows.shape[-1]
        H = np.repeat(h[None], len(now.cohort), axis=0)
        W = np.broadcast_to(w, H.shape)
        for j, step in enumerate(now.steps):
            rows = now.rows[:, j]
            X = self.X[rows]
            Z = residual(work, X @ W, self.y[rows])
            Z *= step.alpha / b
            H += X.transpose(0, 2, 1) @ Z
            H -= (0.5 * step.alpha * work.mu) * W
            if j + 1 < len(now.steps):
                W = prox(work, H, step)
        return H
