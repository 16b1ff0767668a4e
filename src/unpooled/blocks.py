"""Register blocks of the two matrix products of a minibatch gradient, Z = XWᵀ and G = ZᵀX.

``f_R_C`` works on R rows and C outputs at once. The sums over features vectorise; that R·C of them share
their loads is what makes the products run near the speed of the machine.
"""

from __future__ import annotations

from typing import Any

from unpooled.arrays import Array
from unpooled.kernel import kernel


@kernel
def dot(x: Array, w: Array) -> Any:
    """x·w."""
    z = w.dtype.type(0)
    for j in range(w.size):
        z += x[j] * w[j]
    return z


@kernel
def dots_5_1(X: Array, batch: Array, i: int, w: Array, Z: Array, c: int) -> None:
    """Z[i … i+4, c] ← the rows' products with w."""
    x0, x1, x2, x3, x4 = X[batch[i]], X[batch[i + 1]], X[batch[i + 2]], X[batch[i + 3]], X[batch[i + 4]]
    zero = w.dtype.type(0)
    z0, z1, z2, z3, z4 = zero, zero, zero, zero, zero
    for j in range(w.size):
        z0 += x0[j] * w[j]
        z1 += x1[j] * w[j]
        z2 += x2[j] * w[j]
        z3 += x3[j] * w[j]
        z4 += x4[j] * w[j]
    Z[i, c], Z[i + 1, c], Z[i + 2, c], Z[i + 3, c], Z[i + 4, c] = z0, z1, z2, z3, z4


@kernel
def dots_5_2(X: Array, batch: Array, i: int, w: Array, u: Array, Z: Array, c: int) -> None:
    """Z[i … i+4, c] and Z[i … i+4, c+1] ← the rows' products with w and with u."""
    x0, x1, x2, x3, x4 = X[batch[i]], X[batch[i + 1]], X[batch[i + 2]], X[batch[i + 3]], X[batch[i + 4]]
    zero = w.dtype.type(0)
    z0, z1, z2, z3, z4 = zero, zero, zero, zero, zero
    y0, y1, y2, y3, y4 = zero, zero, zero, zero, zero
    for j in range(w.size):
        z0 += x0[j] * w[j]
        z1 += x1[j] * w[j]
        z2 += x2[j] * w[j]
        z3 += x3[j] * w[j]
        z4 += x4[j] * w[j]
        y0 += x0[j] * u[j]
        y1 += x1[j] * u[j]
        y2 += x2[j] * u[j]
        y3 += x3[j] * u[j]
        y4 += x4[j] * u[j]
    Z[i, c], Z[i + 1, c], Z[i + 2, c], Z[i + 3, c], Z[i + 4, c] = z0, z1, z2, z3, z4
    c += 1
    Z[i, c], Z[i + 1, c], Z[i + 2, c], Z[i + 3, c], Z[i + 4, c] = y0, y1, y2, y3, y4


@kernel
def clear(G: Array) -> None:
    """G ← 0."""
    for j in range(G.size):
        G[j] = 0


@kernel
def add(x: Array, z: float, G: Array) -> None:
    """G ← G + z x."""
    for j in range(G.size):
        G[j] += z * x[j]


@kernel
def add_5_1(X: Array, batch: Array, i: int, Z: Array, c: int, G: Array) -> None:
    """G ← G + Σ over the five rows of Z[·, c] x."""
    x0, x1, x2, x3, x4 = X[batch[i]], X[batch[i + 1]], X[batch[i + 2]], X[batch[i + 3]], X[batch[i + 4]]
    z0, z1, z2, z3, z4 = Z[i, c], Z[i + 1, c], Z[i + 2, c], Z[i + 3, c], Z[i + 4, c]
    for j in range(G.size):
        G[j] += z0 * x0[j] + z1 * x1[j] + z2 * x2[j] + z3 * x3[j] + z4 * x4[j]


@kernel
def add_5_2(X: Array, batch: Array, i: int, Z: Array, c: int, G: Array, H: Array) -> None:
    """G and H ← G and H + Σ over the five rows of Z[·, c] x and Z[·, c+1] x."""
    x0, x1, x2, x3, x4 = X[batch[i]], X[batch[i + 1]], X[batch[i + 2]], X[batch[i + 3]], X[batch[i + 4]]
    z0, z1, z2, z3, z4 = Z[i, c], Z[i + 1, c], Z[i + 2, c], Z[i + 3, c], Z[i + 4, c]
    c += 1
    y0, y1, y2, y3, y4 = Z[i, c], Z[i + 1, c], Z[i + 2, c], Z[i + 3, c], Z[i + 4, c]
    for j in range(G.size):
        G[j] += z0 * x0[j] + z1 * x1[j] + z2 * x2[j] + z3 * x3[j] + z4 * x4[j]
        H[j] += y0 * x0[j] + y1 * x1[j] + y2 * x2[j] + y3 * x3[j] + y4 * x4[j]
