"""The two matrix products of a minibatch gradient, Z = XWᵀ and G = ZᵀX, and exponentials, in plain loops.

``f_R_C`` processes R rows and C outputs at once. The sums over features vectorise, and R·C sums share their
loads. ``vector_products`` is the faster SIMD version for supported hosts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel


@kernel
def margins(X: Array, batch: Array, w: Array, Z: Array) -> None:
    """Z[i, c] ← x_i·w_c for the rows i of the batch.

    Blocks of five rows and two outputs keep ten sums in registers, and seven loads feed ten
    multiplications. Smaller blocks handle the remainder.
    """
    p, n_outputs = X.shape[1], Z.shape[1]
    fives, pairs = batch.size - batch.size % 5, n_outputs - n_outputs % 2
    for c in range(0, pairs, 2):
        for i in range(0, fives, 5):
            dots_5_2(X, batch, i, w[c * p : (c + 1) * p], w[(c + 1) * p : (c + 2) * p], Z, c)
    for c in range(pairs, n_outputs):
        for i in range(0, fives, 5):
            dots_5_1(X, batch, i, w[c * p : (c + 1) * p], Z, c)
    for i in range(fives, batch.size):
        for c in range(n_outputs):
            Z[i, c] = dot(X[batch[i]], w[c * p : (c + 1) * p])


@kernel
def adjoint(X: Array, batch: Array, Z: Array, G: Array) -> None:
    """G_c ← Σ_i Z[i, c] x_i over the rows of the batch, in the blocks of ``margins``."""
    p, n_outputs = X.shape[1], Z.shape[1]
    fives, pairs = batch.size - batch.size % 5, n_outputs - n_outputs % 2
    for c in range(0, pairs, 2):
        clear(G[c * p : (c + 2) * p])
        for i in range(0, fives, 5):
            add_5_2(X, batch, i, Z, c, G[c * p : (c + 1) * p], G[(c + 1) * p : (c + 2) * p])
    for c in range(pairs, n_outputs):
        clear(G[c * p : (c + 1) * p])
        for i in range(0, fives, 5):
            add_5_1(X, batch, i, Z, c, G[c * p : (c + 1) * p])
    for i in range(fives, batch.size):
        for c in range(n_outputs):
            add(X[batch[i]], Z[i, c], G[c * p : (c + 1) * p])


@kernel
def sparse_margins(
    values: Array, columns: Array, starts: Array, batch: Array, w: Array, stride: int, Z: Array
) -> None:
    """Z[i, c] ← Σ_j x_ij w[jS + c] over the non-zeros of the rows i of the batch, S the stride."""
    n_outputs = Z.shape[1]
    for i in range(batch.size):
        clear(Z[i])
        for q in range(starts[batch[i]], starts[batch[i] + 1]):
            first = np.int64(columns[q]) * stride
            add(w[first : first + n_outputs], values[q], Z[i])


@kernel
def sparse_adjoint(
    values: Array, columns: Array, starts: Array, batch: Array, Z: Array, G: Array, stride: int
) -> None:
    """G[jS + c] ← G[jS + c] + Σ_i Z[i, c] x_ij over the non-zeros of the rows i of the batch."""
    n_outputs = Z.shape[1]
    for i in range(batch.size):
        for q in range(starts[batch[i]], starts[batch[i] + 1]):
            first = np.int64(columns[q]) * stride
            add(Z[i], values[q], G[first : first + n_outputs])


@kernel
def exponentials(Z: Array) -> None:
    """Z ← e^Z, entry by entry, for Z ≤ 0."""
    for i in range(Z.shape[0]):
        for c in range(Z.shape[1]):
            Z[i, c] = np.exp(Z[i, c])


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
