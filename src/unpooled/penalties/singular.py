"""Shrinking the singular values of a matrix: soft thresholding, and projection on the nuclear-norm ball.

A matrix of moderate size goes through the eigenvectors of the smaller of its Gram matrices, with Jacobi's
rotations where those are not accurate enough, until a bound on the error (``certificate``) is a rounding error
of the result's precision. LAPACK's SVD is there for what does not get so far.
"""

from __future__ import annotations

import math

import numpy as np

from unpooled.arrays import Array
from unpooled.kernel import kernel
from unpooled.penalties.certificate import error_bound, rounding
from unpooled.penalties.eigenvectors import eigenvectors
from unpooled.penalties.jacobi import sweep

MODERATE = 200  # rows or columns, up to which the loops here are faster than LAPACK
MAX_SWEEPS = 12
FLOAT32 = 2.0**-28  # accuracy of a result that is rounded to float32, relative to the size of the matrix


@kernel
def shrunk(a: Array, rows: int, columns: int, lam: float, radius: float, out: Array) -> float:
    """argmin ½‖X − A‖² + λ‖X‖_* over ‖X‖_* ≤ radius, for matrices that lie flat, row by row.

    Writes X = U diag((σ − λ − κ)₊) Vᵀ to the precision of ``out`` and returns κ ≥ 0, the multiplier of the
    radius. Where a value is not finite, X and κ are NaN.
    """
    kappa, _, _ = shrink(a, rows, columns, lam, radius, MAX_SWEEPS, True, out)
    return kappa


@kernel
def nuclear_norm(a: Array, rows: int, columns: int) -> float:
    """Σσ, the nuclear norm of a matrix that lies flat, row by row."""
    _, norm, _ = shrink(a, rows, columns, 0.0, math.inf, MAX_SWEEPS, True, np.empty(0))
    return norm


@kernel
def shrink(
    a: Array, rows: int, columns: int, lam: float, radius: float, sweeps: int, fallback: bool, out: Array
) -> tuple[float, float, float]:
    """``shrunk`` with at most so many Jacobi sweeps: returns κ, Σσ and a bound on ‖X − X*‖_F.

    Where that is not enough, LAPACK does it (at once, where ``sweeps`` is negative), or X is as good as its
    bound if there is no ``fallback``. An empty ``out`` asks for Σσ alone.
    """
    scale = power_of_two(a)
    if not scale < math.inf or math.isnan(lam):
        for j in range(out.size):
            out[j] = math.nan
        return math.nan, math.nan, math.nan
    # S is A, or its transpose if that has fewer rows; numbers near 1 square without under- or overflow.
    k, m = min(rows, columns), max(rows, columns)
    S = np.empty((k, m))
    square = 0.0
    for i in range(rows):
        for j in range(columns):
            x = a[i * columns + j] / scale
            square += x * x
            if rows <= columns:
                S[i, j] = x
            else:
                S[j, i] = x
    size = math.sqrt(square)
    lam, radius = lam / scale, radius / scale
    if out.size > 0 and lam >= size:  # no singular value exceeds λ
        for j in range(out.size):
            out[j] = 0.0
        return 0.0, math.nan, 0.0
    B, Q, sigma = np.empty((k, m)), np.empty((k, k)), np.empty(k)
    allowance = size * rounding(rows, columns)
    tolerance = allowance if out.itemsize == 8 else size * FLOAT32
    bound = math.inf
    if sweeps >= 0 and k <= MODERATE:
        bound = rotated(S, lam, radius, sweeps, tolerance, out.size == 0, B, Q, sigma)
    if fallback and not bound <= tolerance:
        lapack(S, B, Q, sigma)
        bound = 0.0
    kappa, norm = multiplier(sigma, lam, radius)
    if out.size > 0:
        assemble(B, Q, sigma, lam + kappa, scale, rows <= columns, out)
    return kappa * scale, norm * scale, (bound + allowance) * scale


@kernel
def power_of_two(a: Array) -> float:
    """A power of two within a factor of two of the largest entry; 1 for zero, infinite where one is not finite."""
    peak, poison = 0.0, 0.0
    for j in range(a.size):
        peak = max(peak, abs(a[j]))
        poison += 0.0 * a[j]  # NaN from NaN and infinity
    if math.isnan(poison):
        return math.inf
    return math.ldexp(1.0, math.frexp(peak)[1] - 1) if peak > 0.0 else 1.0


@kernel
def rotated(
    S: Array,
    lam: float,
    radius: float,
    sweeps: int,
    tolerance: float,
    summed: bool,
    B: Array,
    Q: Array,
    sigma: Array,
) -> float:
    """Write an orthogonal Q, B = Q S with rows that are orthogonal, or nearly, and their norms; bound the error."""
    k = S.shape[0]
    G, square = np.empty((k, k)), np.empty(k)
    np.dot(S, S.T, G)
    eigenvectors(G, Q)
    np.dot(Q, S, B)
    for made in range(sweeps + 1):
        np.dot(B, B.T, G)
        for i in range(k):
            sigma[i] = math.sqrt(G[i, i])
        kappa, _ = multiplier(sigma, lam, radius)
        floor, t = 0.25 * tolerance, lam + kappa
        bound, settled = error_bound(G, sigma, t, floor, summed or radius < math.inf)
        if bound <= tolerance or made == sweeps:
            break
        sweep(B, Q, square, max(t, floor), tolerance / (2.0 * k), not settled)
    return bound


@kernel
def lapack(S: Array, B: Array, Q: Array, sigma: Array) -> None:
    """The same from LAPACK's SVD."""
    left, values, right = np.linalg.svd(S, full_matrices=False)
    for i in range(sigma.size):
        sigma[i] = values[i]
        for j in range(S.shape[1]):
            B[i, j] = values[i] * right[i, j]
        for j in range(S.shape[0]):
            Q[i, j] = left[j, i]


@kernel
def multiplier(sigma: Array, lam: float, radius: float) -> tuple[float, float]:
    """The κ ≥ 0 with Σ(σ − λ − κ)₊ ≤ radius, zero or tight, and Σσ."""
    norm, kappa = 0.0, 0.0
    for i in range(sigma.size):
        norm += sigma[i]
    if norm <= radius:
        return 0.0, norm
    for _ in range(sigma.size):  # κ grows until no σ falls below it
        total, active = 0.0, 0
        for i in range(sigma.size):
            if sigma[i] - lam > kappa:
                total += sigma[i] - lam
                active += 1
        if active == 0 or (total - radius) / active <= kappa:
            break
        kappa = (total - radius) / active
    return kappa, norm


@kernel
def assemble(B: Array, Q: Array, sigma: Array, t: float, scale: float, upright: bool, out: Array) -> None:
    """out ← Σ_i (1 − t/σ_i)₊ q_i b_iᵀ, transposed unless ``upright``, times the scale."""
    k, m = B.shape
    above = 0
    for i in range(k):
        above += sigma[i] > t
    left, right = np.empty((above, k)), np.empty((above, m))
    row = 0
    for i in range(k):
        if sigma[i] > t:
            factor = scale * (1.0 - t / sigma[i])
            for j in range(k):
                left[row, j] = Q[i, j]
            for j in range(m):
                right[row, j] = factor * B[i, j]
            row += 1
    X = np.zeros((k, m))
    if above > 0:
        np.dot(left.T, right, X)
    for i in range(k):
        for j in range(m):
            out[i * m + j if upright else j * k + i] = X[i, j]
