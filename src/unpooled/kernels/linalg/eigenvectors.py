"""Eigenvectors of a small symmetric matrix in plain loops, faster than LAPACK below a few hundred rows.

Householder reflections make the matrix tridiagonal, implicit QL steps make it diagonal (Wilkinson, Reinsch,
*Linear Algebra*, 1971). An off-diagonal entry counts as zero once it is a rounding error relative to the
whole matrix; ``jacobi`` refines the result where more accuracy is needed.
"""

from __future__ import annotations

import math

import numpy as np

from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel
from unpooled.kernels.outlined import outlined

ROUNDING = 2.0**-53
TINY = 1e-290  # squares below it are zero: their inverses overflow
MAX_STEPS = 30  # QL steps for one eigenvalue; two are usual


@outlined("b1(f8[:, ::1], f8[:, ::1])")
def eigenvectors(G: Array, Q: Array) -> bool:
    """Write orthonormal eigenvectors into the rows of Q, so that Q G Qᵀ is diagonal; G is destroyed.

    Returns False if the iteration did not converge; the rows of Q are orthonormal in either case.
    """
    k = G.shape[0]
    d, e, p = np.zeros(k), np.zeros(k), np.zeros(k)
    tridiagonalise(G, d, e, p)
    undo_reflections(G, Q)
    ended = diagonalise(d, e, Q)
    for i in range(k):  # thousands of rotations leave their rounding errors mostly in the lengths
        square = 0.0
        for j in range(k):
            square += Q[i, j] * Q[i, j]
        length = 1.0 / math.sqrt(square)
        for j in range(k):
            Q[i, j] *= length
    return bool(ended)


@kernel
def tridiagonalise(G: Array, d: Array, e: Array, p: Array) -> None:
    """Diagonal d and off-diagonal e of H⋯GH⋯, row after row from the last.

    Row c keeps its reflection I − uuᵀ/η: u left of the diagonal, η = ‖u‖²/2 on it, zero for none.
    """
    k = G.shape[0]
    for c in range(k - 1, 0, -1):
        d[c], corner = G[c, c], G[c, c - 1]
        G[c, c], e[c - 1] = 0.0, corner
        square = 0.0
        for i in range(c - 1):
            square += G[c, i] * G[c, i]
        if not square > 0.0:
            continue
        square += corner * corner
        reflected = -math.copysign(math.sqrt(square), corner)
        eta = square - reflected * corner
        if not eta > 0.0:
            continue
        G[c, c], G[c, c - 1], e[c - 1] = eta, corner - reflected, reflected
        inverse, inner = 1.0 / eta, 0.0
        for i in range(c):
            total = 0.0
            for j in range(c):
                total += G[i, j] * G[c, j]
            p[i] = total * inverse
            inner += p[i] * G[c, i]
        inner *= 0.5 * inverse
        for i in range(c):
            p[i] -= inner * G[c, i]
        for i in range(c):
            u, q = G[c, i], p[i]
            for j in range(c):
                G[i, j] -= u * p[j] + q * G[c, j]
    d[0] = G[0, 0]


@kernel
def undo_reflections(G: Array, Q: Array) -> None:
    """Q ← the product of the reflections, as rows."""
    k = G.shape[0]
    for i in range(k):
        for j in range(k):
            Q[i, j] = 0.0
        Q[i, i] = 1.0
    for c in range(1, k):
        if G[c, c] > 0.0:
            inverse = 1.0 / G[c, c]
            for i in range(c):
                inner = 0.0
                for j in range(c):
                    inner += Q[i, j] * G[c, j]
                inner *= inverse
                for j in range(c):
                    Q[i, j] -= inner * G[c, j]


@kernel
def diagonalise(d: Array, e: Array, Q: Array) -> bool:
    """Implicit QL steps on the tridiagonal matrix (d, e), their rotations applied to the rows of Q."""
    k = d.size
    size = 0.0
    for i in range(k):
        size = max(size, abs(d[i]) + abs(e[i]))
    negligible = ROUNDING * size
    for first in range(k):
        steps = 0
        while True:
            last = first
            while last < k - 1 and abs(e[last]) > negligible:
                last += 1
            if last == first:
                break
            if steps == MAX_STEPS:
                return False
            steps += 1
            ratio = 0.5 * (d[first + 1] - d[first]) / e[first]
            shift = d[first] - e[first] / (ratio + math.copysign(math.sqrt(ratio * ratio + 1.0), ratio))
            g, s, c, p = d[last] - shift, 1.0, 1.0, 0.0
            for i in range(last - 1, first - 1, -1):
                f, b = s * e[i], c * e[i]
                square = f * f + g * g
                e[i + 1] = math.sqrt(square)
                inverse = e[i + 1] * (1.0 / square)  # the division does not wait for the root
                s, c = (f * inverse, g * inverse) if square > TINY else (0.0, 1.0)
                g = d[i + 1] - p
                r = (d[i] - g) * s + 2.0 * c * b
                p = s * r
                d[i + 1] = g + p
                g = c * r - b
                for j in range(k):
                    x, y = Q[i, j], Q[i + 1, j]
                    Q[i, j] = c * x - s * y
                    Q[i + 1, j] = s * x + c * y
            d[first] -= p
            e[first], e[last] = g, 0.0
    return True
