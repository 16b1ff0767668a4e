"""Convert a flattened matrix A to a wide, scaled matrix S and back.

S is A/scale or its transpose, so that it has no more rows than columns. The scale is a power of two, so the
division is exact, and squares of entries neither underflow nor overflow.
"""

from __future__ import annotations

import math

import numpy as np

from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel


@kernel
def power_of_two(a: Array) -> float:
    """A power of two near the largest entry; 1 for a zero matrix, infinite if an entry is not finite."""
    peak, poison = 0.0, 0.0
    for j in range(a.size):
        peak = max(peak, abs(a[j]))
        poison += 0.0 * a[j]  # NaN from NaN and infinity
    if math.isnan(poison):
        return math.inf
    # not below 2^−1000: compiled code multiplies by the inverse, which must not overflow
    return math.ldexp(1.0, max(math.frexp(peak)[1] - 1, -1000)) if peak > 0.0 else 1.0


@kernel
def widen(a: Array, rows: int, columns: int, scale: float, S: Array) -> float:
    """Write S; return ‖S‖_F."""
    square = 0.0
    for i in range(rows):
        for j in range(columns):
            x = a[i * columns + j] / scale
            square += x * x
            if rows <= columns:
                S[i, j] = x
            else:
                S[j, i] = x
    return math.sqrt(square)


@kernel
def lay_flat(X: Array, rows: int, columns: int, scale: float, out: Array) -> None:
    """out ← scale·X, transposed back and flattened row by row."""
    for i in range(rows):
        for j in range(columns):
            out[i * columns + j] = scale * (X[i, j] if rows <= columns else X[j, i])


@kernel
def gram(S: Array, G: Array) -> None:
    """G ← S Sᵀ."""
    for i in range(S.shape[0]):
        for j in range(i + 1):
            inner = 0.0
            for q in range(S.shape[1]):
                inner += S[i, q] * S[j, q]
            G[i, j] = G[j, i] = inner


@kernel
def assemble(B: Array, Q: Array, sigma: Array, t: float, X: Array) -> None:
    """X ← Σ_i (1 − t/σ_i)₊ q_i b_iᵀ."""
    k, m = X.shape
    above = 0
    for i in range(sigma.size):
        above += sigma[i] > t
    left, right = np.empty((k, above)), np.empty((above, m))
    row = 0
    for i in range(sigma.size):
        if sigma[i] > t:
            for j in range(k):
                left[j, row] = Q[i, j]
            for j in range(m):
                right[row, j] = (1.0 - t / sigma[i]) * B[i, j]
            row += 1
    if above > 0:
        np.dot(left, right, X)
    else:
        X[:] = 0.0
