"""One-sided Jacobi rotations, which make the rows of B = Q S orthogonal.

The eigenvectors of the Gram matrix are accurate to a rounding error of ‖S‖², which is too coarse for singular
values far below the largest. Jacobi rotations work on the rows themselves and have no such floor.
"""

from __future__ import annotations

import math

from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel
from unpooled.kernels.outlined import outlined


@outlined("i8(f8[:, ::1], f8[:, ::1], f8[::1], f8, f8, b1)")
def sweep(B: Array, Q: Array, square: Array, t: float, allowed: float, tail: bool) -> int:
    """Rotate pairs of rows of B and Q once; return how many were rotated.

    ``square`` is scratch for the rows' squared norms. Skips pairs whose share of the error at threshold t is
    within ``allowed`` (see ``error_bounds``) and, unless ``tail``, pairs with both norms below t.
    """
    k, rotations = B.shape[0], 0
    for i in range(k):
        square[i] = squared_norm(B[i])
    for i in range(k - 1):
        for j in range(i + 1, k):
            high, low = max(square[i], square[j]), min(square[i], square[j])
            if high <= t * t and not tail:
                continue
            inner = 0.0
            for q in range(B.shape[1]):
                inner += B[i, q] * B[j, q]
            if low > t * t:  # both above: t|cos|, and a cosine that is small
                cosine = abs(inner) / math.sqrt(low * high)
                done = t * cosine <= allowed and cosine * cosine * math.sqrt(high) <= allowed
            else:
                done = abs(inner) <= allowed * math.sqrt(high)
            if done or not abs(inner) < math.inf:
                continue
            rotations += 1
            half = 0.5 * (square[j] - square[i])
            tangent = inner / (half + math.copysign(math.sqrt(half * half + inner * inner), half))
            c = 1.0 / math.sqrt(1.0 + tangent * tangent)
            s = c * tangent
            square[i] -= tangent * inner
            square[j] += tangent * inner
            for q in range(B.shape[1]):
                x, y = B[i, q], B[j, q]
                B[i, q] = c * x - s * y
                B[j, q] = s * x + c * y
            for q in range(k):
                x, y = Q[i, q], Q[j, q]
                Q[i, q] = c * x - s * y
                Q[j, q] = s * x + c * y
    return rotations


@kernel
def squared_norm(x: Array) -> float:
    """‖x‖²."""
    total = 0.0
    for q in range(x.size):
        total += x[q] * x[q]
    return total
