"""Shrink the singular values of a matrix: soft thresholding, and projection on the nuclear-norm ball.

For a matrix of moderate size, start from the eigenvectors of the smaller of its Gram matrices and apply
Jacobi rotations until the error bound (``error_bounds``) reaches a rounding error of the result's precision.
Fall back to LAPACK's SVD if it does not.
"""

from __future__ import annotations

import math

import numpy as np

from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel
from unpooled.kernels.linalg.eigenvectors import eigenvectors
from unpooled.kernels.linalg.error_bounds import error_bound, rounding
from unpooled.kernels.linalg.jacobi import sweep
from unpooled.kernels.linalg.wide_matrix import assemble, gram, lay_flat, power_of_two, widen
from unpooled.kernels.outlined import outlined

MAX_SWEEPS = 12
MODERATE = 256  # rows or columns, up to which the loops here are faster than LAPACK
SINGLE = 2.0**-28  # accuracy of a result that is rounded to float32, relative to the size of the matrix


@kernel
def shrunk(a: Array, rows: int, columns: int, lam: float, radius: float, out: Array) -> float:
    """argmin ½‖X − A‖² + λ‖X‖_* over ‖X‖_* ≤ radius, for matrices flattened row by row.

    Writes X = U diag((σ − λ − κ)₊) Vᵀ to the precision of ``out`` and returns κ ≥ 0, the multiplier of the
    radius. If a value is not finite, X and κ are NaN.
    """
    X = np.empty(a.size)
    tolerance = SINGLE if out.itemsize == 4 else 0.0
    kappa, _, _ = shrink(a, rows, columns, lam, radius, tolerance, MAX_SWEEPS, True, X)
    for j in range(a.size):
        out[j] = X[j]
    return float(kappa)


@kernel
def nuclear_norm(a: Array, rows: int, columns: int) -> float:
    """Σσ, the nuclear norm of a matrix flattened row by row."""
    _, norm, _ = shrink(a, rows, columns, 0.0, math.inf, 0.0, MAX_SWEEPS, True, np.empty(0))
    return float(norm)


@outlined("UniTuple(f8, 3)(f8[::1], i8, i8, f8, f8, f8, i8, b1, f8[::1])")
def shrink(
    a: Array,
    rows: int,
    columns: int,
    lam: float,
    radius: float,
    tolerance: float,
    sweeps: int,
    fallback: bool,
    out: Array,
) -> tuple[float, float, float]:
    """``shrunk`` to a tolerance relative to ‖A‖_F, at least rounding's; returns κ, Σσ, a bound on ‖X − X*‖_F.

    What so many Jacobi sweeps do not bring there, LAPACK does (at once, where ``sweeps`` is negative);
    without ``fallback``, X is as good as its bound. An empty ``out`` asks for Σσ alone.
    """
    scale = power_of_two(a)
    if not scale < math.inf or math.isnan(lam):
        for j in range(out.size):
            out[j] = math.nan
        return math.nan, math.nan, math.nan
    k, m = min(rows, columns), max(rows, columns)
    S = np.empty((k, m))
    size = widen(a, rows, columns, scale, S)
    allowance, lam, radius = size * rounding(rows, columns), lam / scale, radius / scale
    if out.size > 0 and lam >= size:  # no singular value exceeds λ
        for j in range(out.size):
            out[j] = 0.0
        return 0.0, math.nan, allowance * scale
    B, Q, sigma = np.empty((k, m)), np.empty((k, k)), np.empty(k)
    enough, bound = max(allowance, size * tolerance), math.inf
    if sweeps >= 0 and k <= MODERATE:
        bound = rotated(S, lam, radius, sweeps, enough, out.size == 0, B, Q, sigma)
    if fallback and not bound <= enough:
        lapack(S, B, Q, sigma)
        bound = 0.0
    kappa, norm = multiplier(sigma, lam, radius)
    if out.size > 0:
        assemble(B, Q, sigma, lam + kappa, S)
        lay_flat(S, rows, columns, scale, out)
    return kappa * scale, norm * scale, (bound + allowance) * scale


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
    """Rotate by the eigenvectors of S Sᵀ, then by Jacobi sweeps until the bound is within the tolerance."""
    k = S.shape[0]
    G, square = np.empty((k, k)), np.empty(k)
    gram(S, G)
    eigenvectors(G, Q)
    np.dot(Q, S, B)
    for made in range(sweeps + 1):
        gram(B, G)
        for i in range(k):
            sigma[i] = math.sqrt(G[i, i])
        kappa, _ = multiplier(sigma, lam, radius)
        floor, t = 0.25 * tolerance, lam + kappa
        bound, settled = error_bound(G, sigma, t, floor, summed or radius < math.inf)
        if bound <= tolerance or made == sweeps:
            break
        sweep(B, Q, square, max(t, floor), tolerance / (2.0 * k), not settled)
    return float(bound)


@kernel
def lapack(S: Array, B: Array, Q: Array, sigma: Array) -> None:
    """B, Q and σ from LAPACK's SVD."""
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
