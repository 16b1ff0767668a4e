"""PyTorch on the CPU: the cohort's clients in one stack, products by bmm.

Coefficients lie class by class (C, p), which was up to five times as fast as (p, C).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.work import Round, Step, Work


class Solver:
    """Batched products over the clients; PyTorch has the threads."""

    def __init__(self, work: Work, threads: int):
        self.work, self.threads = work, threads
        self.X, self.y = torch.from_numpy(work.X), torch.from_numpy(work.data.y)
        if work.is_softmax:
            self.y = self.y.long()
        self.h = torch.from_numpy(np.ascontiguousarray(work.dual_start.T))
        self.rows = [torch.from_numpy(now.rows) for now in work.rounds]

    @torch.inference_mode()
    def run(self, rounds: int) -> NDArray[np.float64]:
        """The server's iterate (p, C) after so many rounds from the start."""
        torch.set_num_threads(self.threads)
        h, last = self.h, self.work.first
        for now, rows in zip(self.work.rounds[:rounds], self.rows, strict=False):
            H = self._cohort(now, rows, h, self._prox(h, last))
            h = torch.tensordot(torch.from_numpy(now.weights).to(h.dtype), H, dims=1)
            last = now.steps[-1]
        return self._prox(h, last).numpy().astype(np.float64).T

    def _cohort(self, now: Round, rows: Any, h: Any, w: Any) -> Any:
        """The clients' dual vectors (S, C, p) after their local steps."""
        work, b = self.work, rows.shape[-1]
        H = h.repeat(len(now.cohort), 1, 1)
        W = w.expand(H.shape)
        for j, step in enumerate(now.steps):
            X, y = self.X[rows[:, j]], self.y[rows[:, j]]
            Z = torch.bmm(X, W.transpose(1, 2))
            if work.is_softmax:
                Z = torch.softmax(Z, -1)
                Z.scatter_add_(-1, y[..., None], Z.new_full((1,), -1.0).expand(*y.shape, 1))
            else:
                Z -= y[..., None]
            H.baddbmm_(Z.transpose(1, 2), X, alpha=step.alpha / b)
            H.sub_(W, alpha=0.5 * step.alpha * work.mu)
            if j + 1 < len(now.steps):
                W = self._prox(H, step)
        return H

    def _prox(self, h: Any, step: Step) -> Any:
        v, t = h / -step.c, step.A / step.c * self.work.lam
        if self.work.matrix is None:
            return torch.nn.functional.softshrink(v, t)
        U, s, Vt = torch.linalg.svd(v.reshape(*v.shape[:-2], *self.work.matrix), full_matrices=False)
        return ((U * (s - t).clamp(min=0)[..., None, :]) @ Vt).reshape(v.shape)
