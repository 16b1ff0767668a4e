"""Shrinking the singular values of a matrix: soft thresholding, and projection on the nuclear-norm ball."""

from __future__ import annotations

import numpy as np

from unpooled.arrays import Array
from unpooled.kernel import kernel


@kernel
def shrunk(a: Array, rows: int, columns: int, lam: float, radius: float, out: Array) -> tuple[float, float]:
    """argmin ½‖X − A‖² + λ‖X‖_* over ‖X‖_* ≤ radius, for matrices that lie flat, row by row.

    Writes X = U diag((σ − λ − κ)₊) Vᵀ and returns Σσ, the nuclear norm of A, and κ ≥ 0, the multiplier of the
    radius. All the work on singular values goes through here: LAPACK's wrapper is slow to compile.
    """
    A = np.empty((rows, columns))
    for i in range(rows):
        for j in range(columns):
            A[i, j] = a[i * columns + j]
    left, sigma, right = np.linalg.svd(A, full_matrices=False)
    norm, total, kappa = 0.0, 0.0, 0.0
    for i in range(sigma.size):  # in descending order
        norm += sigma[i]
        total += sigma[i] - lam
        if (total - radius) / (i + 1) < sigma[i] - lam:
            kappa = max((total - radius) / (i + 1), 0.0)
    for i in range(sigma.size):
        size = max(sigma[i] - lam - kappa, 0.0)
        for j in range(columns):
            right[i, j] *= size
    X = np.dot(left, right)
    for i in range(rows):
        for j in range(columns):
            out[i * columns + j] = X[i, j]
    return norm, kappa
