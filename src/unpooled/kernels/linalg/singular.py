"""Shrinking the singular values of a matrix: soft thresholding, and projection on the nuclear-norm ball.

A matrix of moderate size goes through the eigenvectors of the smaller of its Gram matrices, with Jacobi's
rotations where those are not accurate enough, until a bound on the error (``certificate``) has come down to a
rounding error of the result's precision. LAPACK's SVD is there for what does not get so far.
"""

from __future__ import annotations

import math

import numpy as np

from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel
from unpooled.kernels.linalg.eigenvectors import eigenvectors
from unpooled.kernels.linalg.jacobi import sweep
from unpooled.kernels.linalg.residuals import error_bound, rounding
from unpooled.kernels.linalg.simplex import multiplier
from unpooled.kernels.linalg.wide import assemble, gram, lay_flat, power_of_two, widen
from unpooled.kernels.outlined import outlined

MAX_SWEEPS = 12
MODERATE = 256  # rows or columns, up to which the loops here are faster than LAPACK
SINGLE = 2.0**-28  # accuracy of a result that is rounded to float32, relative to the size of the matrix


@kernel
def shrunk(a: Array, rows: int, columns: int, lam: float, radius: float, out: Array) -> float:
    """argmin ½‖X − A‖² + λ‖X‖_* over ‖X‖_* ≤ radius, for matrices that lie flat, row by row.

    Writes X = U diag((σ − λ − κ)₊) Vᵀ to the precision of ``out`` and returns κ ≥ 0, the multiplier of the
    radius. Where a value is not finite, X and κ are NaN.
    """
    X = np.empty(a.size)
    tolerance = SINGLE if out.itemsize == 4 else 0.0
    kappa, _, _ = shrink(a, rows, columns, lam, radius, tolerance, MAX_SWEEPS, True, X)
    for j in range(a.size):
        out[j] = X[j]
    return float(kappa)


@kernel
def nuclear_norm(a: Array, rows: int, columns: int) -> float:
    """Σσ, the nuclear norm of a matrix that lies flat, row by row."""
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
    """From the eigenvectors of S Sᵀ and, until the bound is within the tolerance, Jacobi's sweeps."""
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
    """The same from LAPACK's SVD."""
    left, values, right = np.linalg.svd(S, full_matrices=False)
    for i in range(sigma.size):
        sigma[i] = values[i]
        for j in range(S.shape[1]):
            B[i, j] = values[i] * right[i, j]
        for j in range(S.shape[0]):
            Q[i, j] = left[j, i]
