"""Coordinate descent for  ½vᵀHv − cᵀv + Σ_j (λ_j|v_j| + ½ r_j v_j²)  with an explicit H.

Passes over all coordinates find the working set of non-zero coordinates. Between them, the problem on the
working set is solved on a copy of its block of H that fits in cache.
"""

from __future__ import annotations

import numpy as np

from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel

PASSES = 20_000
TOLERANCE = 1e-12  # on a coordinate's step times its curvature, relative to the scale of c


@kernel
def step(H: Array, q: Array, v: Array, weight: float, ridge: float, j: int) -> float:
    """Minimise over v_j, updating v and q = Hv − c in place; returns the change of the gradient at j."""
    a, old = H[j, j], v[j]
    if a + ridge <= 0.0:
        return 0.0
    u = a * old - q[j]
    new = (u - max(-weight, min(weight, u))) / (a + ridge)
    moved = new - old
    if moved != 0.0:
        v[j] = new
        for i in range(v.size):
            q[i] += moved * H[j, i]
    return float(abs(moved) * (a + ridge))


@kernel
def descend(
    H: Array, q: Array, v: Array, weight: Array, ridge: Array, skipped: int, tolerance: float, passes: int
) -> bool:
    """Minimise over all coordinates except ``skipped`` (−1: none); returns whether it converged.

    H (p, p) is symmetric; v and q = Hv − c are updated in place.
    """
    p = v.size
    working = np.empty(p, np.int64)
    while passes > 0:
        passes -= 1
        worst, size = 0.0, 0
        for j in range(p):
            if j != skipped:
                worst = max(worst, step(H, q, v, weight[j], ridge[j], j))
                if v[j] != 0.0:
                    working[size] = j
                    size += 1
        if worst <= tolerance:
            return True
        block, slope, point = np.empty((size, size)), np.empty(size), np.empty(size)
        for a in range(size):
            slope[a], point[a] = q[working[a]], v[working[a]]
            for b in range(size):
                block[a, b] = H[working[a], working[b]]
        while passes > 0 and worst > tolerance:
            passes -= 1
            worst = 0.0
            for a in range(size):
                j = working[a]
                worst = max(worst, step(block, slope, point, weight[j], ridge[j], a))
        for a in range(size):
            j = working[a]
            moved = point[a] - v[j]
            if moved != 0.0:
                v[j] = point[a]
                for i in range(p):
                    q[i] += moved * H[j, i]
    return False


@kernel
def supports(
    H: Array, c: Array, weight: Array, ridge: Array, tolerance: float, passes: int, out: Array
) -> int:
    """Write the support for each row of ``weight`` and ``ridge`` (L, p) to ``out`` (L, p).

    Each solution warm-starts the next. Returns how many did not converge.
    """
    p, failed = c.size, 0
    v, q = np.zeros(p), np.empty(p)
    for j in range(p):
        q[j] = -c[j]
    for i in range(out.shape[0]):
        if not descend(H, q, v, weight[i], ridge[i], -1, tolerance, passes):
            failed += 1
        for j in range(p):
            out[i, j] = v[j] != 0.0
    return failed
