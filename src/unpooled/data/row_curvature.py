"""The curvature of the loss on local rows, for each client and for all clients together."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from unpooled.data.base import Posed
from unpooled.kernels.arrays import Array, Float
from unpooled.kernels.linalg.lanczos import fixed_direction, largest_eigenvalue
from unpooled.kernels.products import times, transposed_times

if TYPE_CHECKING:
    from unpooled.data.federated import FederatedData

POWER_ITERATIONS = 5


def row_curvatures(problem: Posed, data: FederatedData) -> Float:
    """c_i, times the row's sample weight."""
    c, s = problem.loss.curvature(data.y), data.sample_weight
    return np.asarray(c if s is None else c * s, dtype=np.float64)


def curvature_shares(problem: Posed, data: FederatedData) -> Float:
    """c_i s_i/n_k: with these, a client's XᵀDX is the curvature of L_k."""
    return np.asarray(row_curvatures(problem, data) / np.repeat(data.sizes, data.sizes))


def client_spectra(problem: Posed, data: FederatedData) -> tuple[Float, Float]:
    """L_k and max_i c_i‖x_i‖² of every client, on one BLAS thread so that the bits are reproducible."""
    c, u = row_curvatures(problem, data), fixed_direction(data.n_features + int(problem.intercept))
    if data.is_sparse:
        from unpooled.kernels.linalg.sparse_power_iteration import client_spectra as sparse_spectra

        return sparse_spectra(data.record, data.offsets, c, u, POWER_ITERATIONS)
    ones = float(problem.intercept)
    L, longest = np.empty(data.n_clients), np.empty(data.n_clients)
    with threadpool_limits(limits=1, user_api="blas"):
        for k, client in enumerate(data):
            X = client.X.reshape(client.n_rows, -1)
            d = c[data.offsets[k] : data.offsets[k + 1]]
            longest[k] = np.max(d * (np.einsum("ij,ij->i", X, X) + ones))
            L[k] = largest_eigenvalue(partial(_curve, X, d / client.n_rows), u, POWER_ITERATIONS)
    return L, longest


def _curve(X: Any, d: Array, u: Float) -> Float:
    """XᵀDXu; where u has one entry more than X has columns, X is meant with a column of ones behind them."""
    p = X.shape[1]
    z = d[:, None] * (times(X, u[:p, None]) + u[p:].sum())
    return np.append(transposed_times(X, z), np.full(len(u) - p, z.sum()))
