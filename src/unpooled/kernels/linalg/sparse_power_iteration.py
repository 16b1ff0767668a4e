"""The top eigenvalue of every client's curvature on sparse rows, at a cost proportional to the non-zeros."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from numba import prange

from unpooled.kernels.arrays import Array, Float
from unpooled.kernels.compile import compiled, kernel

CHUNKS = 16  # of clients; each chunk allocates one vector of p numbers


def run_clients(
    rows: Any, offsets: Array, c: Array, u: Array, iterations: int, top: Array, longest: Array
) -> None:
    """For each client k the top eigenvalue of XᵀDX/n_k and max_i c_i‖x_i‖², D = diag(c).

    Power iteration from u. If u has one entry more than there are columns, the last one belongs to the
    intercept's column of ones.
    """
    K = offsets.size - 1
    for chunk in prange(CHUNKS):
        v = np.zeros(rows.n_columns)
        for k in range(chunk * K // CHUNKS, (chunk + 1) * K // CHUNKS):
            top[k] = power(rows, offsets[k], offsets[k + 1], c, u, iterations, v)
            longest[k] = longest_row(rows, offsets[k], offsets[k + 1], c, u.size > v.size)


@kernel
def power(rows: Any, first: int, last: int, c: Array, u: Array, iterations: int, v: Array) -> float:
    """‖XᵀDXu_t‖/n after some iterations; v is zero before and after.

    Only z = DXu/n is kept from one iteration to the next: with v = Xᵀz, ‖v‖² = z·Xv, and z ← DXv/(n‖v‖).
    """
    n, one = last - first, 1.0 if u.size > v.size else 0.0
    z, margin = np.empty(n), np.empty(n)
    times(rows, first, u, one * u[u.size - 1], z)
    for i in range(n):
        z[i] *= c[first + i] / n
    value = 0.0
    for _ in range(iterations):
        total = 0.0
        for i in range(n):
            total += one * z[i]
            for q in range(rows.starts[first + i], rows.starts[first + i + 1]):
                v[rows.columns[q]] += z[i] * rows.values[q]
        times(rows, first, v, total, margin)
        square = 0.0
        for i in range(n):
            square += z[i] * margin[i]
        for q in range(rows.starts[first], rows.starts[last]):
            v[rows.columns[q]] = 0.0
        previous, value = value, math.sqrt(max(square, 0.0))
        if value == 0.0 or abs(value - previous) <= 1e-12 * value:
            break
        for i in range(n):
            z[i] = c[first + i] * margin[i] / (n * value)
    return value


@kernel
def times(rows: Any, first: int, v: Array, constant: float, out: Array) -> None:
    """out ← Xv + constant for the rows from ``first`` on."""
    for i in range(out.size):
        z = constant
        for q in range(rows.starts[first + i], rows.starts[first + i + 1]):
            z += rows.values[q] * v[rows.columns[q]]
        out[i] = z


@kernel
def longest_row(rows: Any, first: int, last: int, c: Array, has_ones: bool) -> float:
    """max_i c_i‖x_i‖²."""
    longest = 0.0
    for i in range(first, last):
        square = 1.0 if has_ones else 0.0
        for q in range(rows.starts[i], rows.starts[i + 1]):
            square += np.float64(rows.values[q]) ** 2
        longest = max(longest, c[i] * square)
    return longest


@functools.cache
def _compiled() -> Any:
    return compiled(run_clients, parallel=True)


def client_spectra(rows: Any, offsets: Array, c: Array, u: Array, iterations: int) -> tuple[Float, Float]:
    """For each client the top eigenvalue by power iteration from u, and max_i c_i‖x_i‖²; c has N entries."""
    top, longest = np.empty(len(offsets) - 1), np.empty(len(offsets) - 1)
    _compiled()(rows, offsets, c, u, iterations, top, longest)
    return top, longest
