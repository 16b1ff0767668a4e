"""The threshold of a large matrix from its leading singular vectors alone, found by subspace iteration.

A block of rows Y is repeatedly multiplied by S Sᵀ and orthonormalised; its Ritz vectors converge to the
singular vectors of the largest singular values. Let Q₁ be those with σ above t, B₁ = Q₁S, u_i = b_i/σ_i, and
S₂ = S − Q₁ᵀB₁ the remainder. Two checks ensure that the threshold of Q₁ᵀB₁ is that of S (``error_bounds``,
with S₂ for Q₂ᵀB₂): the residual ‖S₂U₁ᵀ‖_F is tiny, and ‖S₂‖ ≤ t, so no singular value above t was missed. The
second follows from ‖S₂‖_F ≤ t, or from a Cholesky factor of t²I − S₂S₂ᵀ.
"""

from __future__ import annotations

import math

import numpy as np

from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel
from unpooled.kernels.linalg.eigenvectors import eigenvectors
from unpooled.kernels.linalg.error_bounds import error_bound, rounding
from unpooled.kernels.linalg.singular_values import SINGLE, shrunk
from unpooled.kernels.linalg.wide_matrix import assemble, lay_flat, power_of_two, widen
from unpooled.kernels.outlined import outlined

FIRST_BLOCK = 16
SPARE = 6  # rows of the block beyond the rank, so that the last singular vectors converge
LEAST_STEPS, MAX_STEPS = 3, 25
SHARE = 8  # a block of more than 1/SHARE of the rows is hardly cheaper than the whole SVD
CANCELLED = 1e-6  # t²/‖S‖² below which ‖S‖² − ‖B₁‖² is mostly rounding


@kernel
def shrunk_partially(a: Array, rows: int, columns: int, lam: float, out: Array) -> None:
    """``shrunk`` without a radius, from the leading singular vectors if possible."""
    X = np.empty(a.size)
    if shrink_partially(a, rows, columns, lam, SINGLE if out.itemsize == 4 else 0.0, X) < math.inf:
        for j in range(a.size):
            out[j] = X[j]
    else:
        shrunk(a, rows, columns, lam, math.inf, out)


@outlined("f8(f8[::1], i8, i8, f8, f8, f8[::1])")
def shrink_partially(a: Array, rows: int, columns: int, lam: float, tolerance: float, out: Array) -> float:
    """argmin ½‖X − A‖² + λ‖X‖_*, for flattened matrices; returns a bound on ‖X − X*‖_F.

    The bound is infinite, and ``out`` unchanged, if there are too many leading singular vectors or they do
    not reach the tolerance (relative to ‖A‖_F, and at least the rounding error).
    """
    scale = power_of_two(a)
    if not lam > 0.0 or not scale < math.inf:
        return math.inf
    S = np.empty((min(rows, columns), max(rows, columns)))
    size = widen(a, rows, columns, scale, S)
    allowance, t = size * rounding(rows, columns), lam / scale
    Q, B, sigma, bound = leading(S, size, t, max(allowance, size * tolerance))
    if bound < math.inf:
        assemble(B, Q, sigma, t, S)
        lay_flat(S, rows, columns, scale, out)
    return float((bound + allowance) * scale)


@kernel
def leading(S: Array, size: float, t: float, tolerance: float) -> tuple[Array, Array, Array, float]:
    """Q₁, B₁, σ, and a bound on the error, infinite on failure; ``size`` is ‖S‖_F."""
    Y, checks = start(np.empty((0, S.shape[0])), FIRST_BLOCK), 0
    for step in range(MAX_STEPS):
        if SHARE * Y.shape[0] > S.shape[0]:
            break
        orthonormalise(Y)
        Z = np.dot(Y, S)
        E = np.empty((Y.shape[0], Y.shape[0]))
        eigenvectors(np.dot(Z, Z.T), E)
        Y, Z = np.dot(E, Y), np.dot(E, Z)
        norms = lengths(Z)
        image = np.dot(Z, S.T)  # at convergence its rows are σ²q_i
        Q, B, sigma = chosen(Y, norms, t), chosen(Z, norms, t), lengths(chosen(Z, norms, t))
        if sigma.size + SPARE > Y.shape[0]:
            Y = start(image, 2 * Y.shape[0])
            continue
        G = np.dot(B, B.T)
        left = lengths(chosen(image, norms, t) - np.dot(G, Q))
        residual, found = 0.0, 0.0
        for i in range(sigma.size):
            residual += (left[i] / sigma[i]) ** 2
            found += sigma[i] * sigma[i]
        residual = math.sqrt(residual)
        if step >= LEAST_STEPS and residual <= 0.5 * tolerance:
            small = t * t > CANCELLED * size * size and size * size - found <= t * t
            if small or none_missed(S - np.dot(Q.T, B), t):
                bound, _ = error_bound(G, sigma, t, 0.0, False)
                return Q, B, sigma, bound + 1.2 * residual  # 1/√(1 − c) ≤ 1.2 where the bound is finite
            checks += 1
            if checks == 2:
                break
        Y = image
    return np.empty((0, 0)), np.empty((0, 0)), np.empty(0), math.inf


@kernel
def start(rows: Array, count: int) -> Array:
    """``count`` rows: the given ones, then pseudo-random rows, the same on every machine and run."""
    Y = np.empty((count, rows.shape[1]))
    for i in range(count):
        for j in range(rows.shape[1]):
            if i < rows.shape[0]:
                Y[i, j] = rows[i, j]
            else:
                x = 1e3 * math.sin(12.9898 * (i + 1) + 78.233 * (j + 1))
                Y[i, j] = x - math.floor(x) - 0.5
    return Y


@kernel
def orthonormalise(Y: Array) -> None:
    """Orthonormalise the rows by two passes of Gram–Schmidt."""
    for _ in range(2):
        for i in range(Y.shape[0]):
            for q in range(i):
                inner = 0.0
                for j in range(Y.shape[1]):
                    inner += Y[i, j] * Y[q, j]
                for j in range(Y.shape[1]):
                    Y[i, j] -= inner * Y[q, j]
            square = 0.0
            for j in range(Y.shape[1]):
                square += Y[i, j] * Y[i, j]
            length = 1.0 / math.sqrt(square) if square > 0.0 else 0.0
            for j in range(Y.shape[1]):
                Y[i, j] *= length


@kernel
def lengths(Z: Array) -> Array:
    """The norms of the rows."""
    norms = np.empty(Z.shape[0])
    for i in range(Z.shape[0]):
        square = 0.0
        for j in range(Z.shape[1]):
            square += Z[i, j] * Z[i, j]
        norms[i] = math.sqrt(square)
    return norms


@kernel
def chosen(X: Array, norms: Array, t: float) -> Array:
    """The rows of X whose norm in ``norms`` is above t."""
    count = 0
    for i in range(norms.size):
        count += norms[i] > t
    rows, row = np.empty((count, X.shape[1])), 0
    for i in range(norms.size):
        if norms[i] > t:
            for j in range(X.shape[1]):
                rows[row, j] = X[i, j]
            row += 1
    return rows


@kernel
def none_missed(S2: Array, t: float) -> bool:
    """Whether ‖S₂‖ ≤ t: whether t²I − S₂S₂ᵀ has a Cholesky factor."""
    K = np.dot(S2, S2.T)
    for i in range(K.shape[0]):
        for j in range(i + 1):
            inner = 0.0
            for q in range(j):
                inner += K[i, q] * K[j, q]
            entry = -K[i, j] - inner
            if i == j:
                entry += t * t
                if not entry > 0.0:
                    return False
                K[i, i] = math.sqrt(entry)
            else:
                K[i, j] = entry / K[j, j]
    return True
