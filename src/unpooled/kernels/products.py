"""XW and XᵀZ of a whole data set in double precision, without copying X to another precision or layout."""

from __future__ import annotations

from typing import Any

import numpy as np

from unpooled._validation import blocks, is_sparse
from unpooled.kernels.arrays import Float
from unpooled.kernels.rows import SparseRows


def times(X: Any, W: Float) -> Float:
    """XW of shape (n, C), for W (p, C) and X of shape (n, p), dense or CSR."""
    out = np.empty((X.shape[0], W.shape[1]))
    if is_sparse(X):
        _record(X).margins(np.arange(X.shape[0]), W.ravel(order="F"), out)
    elif X.dtype == np.float64:
        np.matmul(X, W, out=out)
    else:
        for block in blocks(*X.shape):
            np.matmul(X[block].astype(np.float64), W, out=out[block])
    return out


def transposed_times(X: Any, Z: Float) -> Float:
    """XᵀZ of shape (p, C), for Z (n, C)."""
    n, p = X.shape
    if is_sparse(X):
        G = np.empty(p * Z.shape[1])
        _record(X).adjoint(np.arange(n), np.ascontiguousarray(Z), G)
        return G.reshape((p, -1), order="F")
    if X.dtype == np.float64:
        return np.asarray(X.T @ Z)
    out = np.zeros((p, Z.shape[1]))
    for block in blocks(n, p):
        out += X[block].astype(np.float64).T @ Z[block]
    return out


def _record(X: Any) -> SparseRows:
    nothing = np.empty(0, X.dtype)
    return SparseRows(X.data, X.indices, X.indptr, int(X.shape[1]), nothing, nothing)
