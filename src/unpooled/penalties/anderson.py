"""Anderson acceleration of a fixed-point iteration y ← y + r(y)."""

from __future__ import annotations

import numpy as np

from unpooled.arrays import Array
from unpooled.kernel import kernel

REGULARISATION = 1e-14


@kernel
def extrapolated(
    Y: Array, R: Array, point: Array, residual: Array, steps: Array, changes: Array, kept: int, follows: bool
) -> tuple[Array, int]:
    """y + r − Σ_i γ_i (Δy_i + Δr_i), where γ minimises ‖r − Σ_i γ_i Δr_i‖ over the last differences.

    ``point`` and ``residual`` hold the previous y and r, rows of ``steps`` and ``changes`` the differences:
    all are updated. ``kept`` counts the differences made so far; ``follows`` says whether there is a previous
    point. Returns the new y and the new count.
    """
    y, r = Y.reshape(-1), R.reshape(-1)
    memory = steps.shape[0]
    if follows:
        slot = kept % memory
        for j in range(y.size):
            steps[slot, j] = y[j] - point[j]
            changes[slot, j] = r[j] - residual[j]
        kept += 1
    point[:] = y
    residual[:] = r
    used = min(kept, memory)
    new = y + r
    if used > 0:
        gram = np.empty((used, used))
        right = np.empty(used)
        for a in range(used):
            right[a] = np.dot(changes[a], r)
            for b in range(a + 1):
                gram[a, b] = gram[b, a] = np.dot(changes[a], changes[b])
        ridge = REGULARISATION * np.trace(gram)
        for a in range(used):
            gram[a, a] += ridge
        if ridge > 0.0:
            gamma = np.linalg.solve(gram, right)
            for a in range(used):
                for j in range(y.size):
                    new[j] -= gamma[a] * (steps[a, j] + changes[a, j])
    return new.reshape(Y.shape), kept
