"""What a federated library on JAX does: one compiled round, vmap over the clients, scan over their steps.

Of several ways to write it this was the fastest: coefficients class by class (C, p). XLA has all cores, but
leaves most of a batched product to one of them: see ``jax_shared``.
"""

from __future__ import annotations

import os
from typing import Any

DEVICES = os.cpu_count() or 1
os.environ["XLA_FLAGS"] = (
    f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={DEVICES}"
)

import jax  # noqa: E402  (XLA reads its flags when JAX is imported)
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from benchmarks.work import Round, Step, Work  # noqa: E402

jax.config.update("jax_enable_x64", True)  # float32 arrays stay float32


class Solver:
    """A compiled round; each of ``n_devices`` host devices has its share of the cohort.

    Shares are added up on the first device. A collective sum inside the compiled round would be shorter to
    write, but XLA's deadlocks on a CPU when several rounds are under way. XLA chooses its threads itself.
    """

    n_devices = 1

    def __init__(self, work: Work, threads: int):
        # The singular values of two devices wait for each other's threads, and may do so for ever.
        self.work, self.devices = work, jax.devices()[: self.n_devices if work.matrix is None else 1]
        y = work.data.y.astype(np.int32) if work.is_softmax else work.data.y
        self.data = [jax.device_put((work.X, y), device) for device in self.devices]
        self.h, self.first = jnp.asarray(work.dual_start.T), self._numbers(work.first)
        self.rounds = [[self._share(now, d) for d in range(len(self.devices))] for now in work.rounds]
        self.share, self.prox = jax.jit(self._run_share), jax.jit(self._prox)

    def run(self, rounds: int) -> NDArray[np.float64]:
        """The server's iterate (p, C) after so many rounds from the start."""
        h, last = self.h, [jax.device_put(self.first, device) for device in self.devices]
        for shares in self.rounds[:rounds]:
            parts = [self.share(*self.data[0], h, last[0], *shares[0])]
            for d in range(1, len(self.devices)):
                copy = jax.device_put(h, self.devices[d])
                parts.append(self.share(*self.data[d], copy, last[d], *shares[d]))
            h = parts[0][0]
            for part, _ in parts[1:]:
                h = h + jax.device_put(part, self.devices[0])
            last = [numbers for _, numbers in parts]
        return np.asarray(self.prox(h, last[0]), dtype=np.float64).T

    def _numbers(self, *steps: Step) -> Any:
        """α, A/c·λ and −1/c of steps, in the data's precision; numbers for a single one."""
        table = [[step.alpha, step.A / step.c * self.work.lam, -1 / step.c] for step in steps]
        columns = np.array(table, dtype=self.work.data.dtype).T
        return tuple(column[0] if len(steps) == 1 else column for column in columns)

    def _share(self, now: Round, d: int) -> Any:
        """A device's part of the cohort: rows, weights, and the steps' numbers."""
        mine = slice(d, None, len(self.devices))
        weights = now.weights[mine].astype(self.work.data.dtype)
        return jax.device_put(
            (now.rows[mine].astype(np.int32), weights, self._numbers(*now.steps)), self.devices[d]
        )

    def _run_share(self, X: Any, y: Any, h: Any, last: Any, rows: Any, weights: Any, steps: Any) -> Any:
        w = self._prox(h, last)
        H = jax.vmap(lambda batches: self._client(X, y, h, w, batches, steps))(rows)
        return jnp.tensordot(weights, H, axes=1), tuple(column[-1] for column in steps)

    def _client(self, X: Any, y: Any, h: Any, w: Any, batches: Any, steps: Any) -> Any:
        """E − 1 steps with a prox, and the last one without, as in every contender."""

        def local_step(carry: Any, now: Any) -> Any:
            h, w = carry
            batch, step = now
            h = self._ascend(X, y, h, w, batch, step[0])
            return (h, self._prox(h, step)), None

        before, final = jax.tree.map(lambda leaf: leaf[:-1], (batches, steps)), steps[0][-1]
        (h, w), _ = lax.scan(local_step, (h, w), before)
        return self._ascend(X, y, h, w, batches[-1], final)

    def _ascend(self, X: Any, y: Any, h: Any, w: Any, batch: Any, alpha: Any) -> Any:
        rows, target = X[batch], y[batch]
        Z = rows @ w.T
        if self.work.is_softmax:
            Z = jax.nn.softmax(Z) - jax.nn.one_hot(target, Z.shape[-1], dtype=Z.dtype)
        else:
            Z = Z - target[:, None]
        return h + alpha * (Z.T @ rows / len(batch) - 0.5 * self.work.mu * w)

    def _prox(self, h: Any, step: Any) -> Any:
        _, t, scale = step
        v = scale * h
        if self.work.matrix is None:
            return v - jnp.clip(v, -t, t)
        U, s, Vt = jnp.linalg.svd(v.reshape(self.work.matrix), full_matrices=False)
        return ((U * jnp.maximum(s - t, 0)) @ Vt).reshape(v.shape)
