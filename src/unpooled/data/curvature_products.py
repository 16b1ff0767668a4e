"""Curvature-vector products X_kᵀ D_k X_k u, client by client, so that sums have a fixed order."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import prange

from unpooled.kernels.arrays import Array, Float
from unpooled.kernels.compile import compiled, kernel
from unpooled.kernels.rows import SparseRows, adjoint, margins
from unpooled.kernels.weighted_sum import add_rows

if TYPE_CHECKING:
    from unpooled.data.federated import FederatedData

MOST_BYTES = 2**26  # of products held at a time


def run_products(rows: Any, offsets: Array, d: Array, u: Array, first: int, out: Array) -> None:
    """out[s] ← X_kᵀ D_k X_k u for client k = first + s, D_k = diag(d); u may end with an intercept."""
    for s in prange(out.shape[0]):
        product(rows, offsets[first + s], offsets[first + s + 1], d, u, out[s])


@kernel
def product(rows: Any, first: int, last: int, d: Array, u: Array, out: Array) -> None:
    """One client's."""
    batch, Z = np.arange(first, last), np.empty((last - first, 1))
    margins(rows, batch, u, Z)
    for i in range(batch.size):
        Z[i, 0] *= d[first + i]
    adjoint(rows, batch, Z, out)


@kernel
def add_touched(rows: Any, offsets: Array, d: Array, u: Array, weights: Array, v: Array, out: Array) -> None:
    """out ← out + Σ_k weights[k] X_kᵀ D_k X_k u on sparse rows.

    Only the columns that a client's rows have are visited; v (p,) is zero before and after.
    """
    p = rows.n_columns
    for k in range(weights.size):
        first, last = offsets[k], offsets[k + 1]
        batch, Z, total = np.arange(first, last), np.empty((last - first, 1)), 0.0
        margins(rows, batch, u, Z)
        for i in range(batch.size):
            z = Z[i, 0] * d[first + i]
            total += z
            for q in range(rows.starts[first + i], rows.starts[first + i + 1]):
                v[rows.columns[q]] += z * rows.values[q]
        for q in range(rows.starts[first], rows.starts[last]):
            out[rows.columns[q]] += weights[k] * v[rows.columns[q]]
            v[rows.columns[q]] = 0.0
        if out.size > p:
            out[p] += weights[k] * total


@functools.cache
def _compiled_products() -> Any:
    return compiled(run_products, parallel=True)


def client_products(
    data: FederatedData, d: Float, u: Float, first: int = 0, stop: int | None = None
) -> Float:
    """X_kᵀ D_k X_k u of the clients from ``first`` to ``stop``, one a row; d has one entry for each row."""
    out, rows = np.zeros(((data.n_clients if stop is None else stop) - first, u.size)), data.record
    if isinstance(rows, SparseRows):  # by the same code as their sum, which settles the bits
        scratch, one = np.zeros(rows.n_columns), np.ones(1)
        for s in range(len(out)):
            add_touched(rows, data.offsets[first + s : first + s + 2], d, u, one, scratch, out[s])
        return out
    _compiled_products()(rows, data.offsets, d, u, first, out)
    return out


def weighted_product(data: FederatedData, d: Float, u: Float) -> Float:
    """Σ_k π_k X_kᵀ D_k X_k u, client after client."""
    total, rows = np.zeros(u.size), data.record
    if isinstance(rows, SparseRows):
        scratch = np.zeros(rows.n_columns)
        add_touched(rows, data.offsets, d, u, data.weights, scratch, total)
        return total
    step = max(1, MOST_BYTES // (8 * u.size))
    for first in range(0, data.n_clients, step):
        stop = min(first + step, data.n_clients)
        add_rows(total, data.weights[first:stop], client_products(data, d, u, first, stop))
    return total
