"""Anderson acceleration of a fixed-point iteration y ← y + r(y)."""

from __future__ import annotations

import numpy as np

from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel

REGULARISATION = 1e-14


@kernel
def extrapolate(y: Array, r: Array, last: Array, steps: Array, changes: Array, made: int) -> None:
    """y ← y + r − Σ_i γ_i (Δy_i + Δr_i), where γ minimises ‖r − Σ_i γ_i Δr_i‖ over the last differences.

    The rows of ``last`` are the previous y and r; the rows of ``steps`` and ``changes`` are the differences
    Δy_i and Δr_i. All are updated in place. ``made`` is the number of earlier points.
    """
    memory, n = steps.shape
    if made > 0:
        slot = (made - 1) % memory
        for j in range(n):
            steps[slot, j] = y[j] - last[0, j]
            changes[slot, j] = r[j] - last[1, j]
    for j in range(n):
        last[0, j], last[1, j] = y[j], r[j]
        y[j] += r[j]
    used = min(made, memory)
    gram, gamma = np.empty((used, used)), np.empty(used)
    ridge = 0.0
    for a in range(used):
        for b in range(a + 1):
            dot = 0.0
            for j in range(n):
                dot += changes[a, j] * changes[b, j]
            gram[a, b] = gram[b, a] = dot
        dot = 0.0
        for j in range(n):
            dot += changes[a, j] * r[j]
        gamma[a] = dot
        ridge += REGULARISATION * gram[a, a]
    if not ridge > 0.0:
        return
    for a in range(used):  # (gram + ridge) γ = changes·r, by elimination: the matrix is positive definite
        gram[a, a] += ridge
    for a in range(used):
        for b in range(a + 1, used):
            factor = gram[b, a] / gram[a, a]
            gamma[b] -= factor * gamma[a]
            for c in range(a, used):
                gram[b, c] -= factor * gram[a, c]
    for a in range(used - 1, -1, -1):
        for b in range(a + 1, used):
            gamma[a] -= gram[a, b] * gamma[b]
        gamma[a] /= gram[a, a]
    for a in range(used):
        for j in range(n):
            y[j] -= gamma[a] * (steps[a, j] + changes[a, j])
