"""Scale rows to (x − shift)/scale and fill in missing values, dense or CSR."""

from __future__ import annotations

from typing import Any

import numpy as np

from unpooled._validation import blocks, is_sparse
from unpooled.kernels.arrays import Float


def transformed(X: Any, shift: Float, scale: Float, fill: Float | None, dtype: Any) -> Any:
    """A new X of type ``dtype``, computed in float64; ``fill`` is None if no values are missing."""
    if is_sparse(X):
        X = X if fill is None else filled(X, fill)
        values = X.data / scale[X.indices]
        return type(X)((values.astype(dtype), X.indices, X.indptr), shape=X.shape)
    out = np.empty(X.shape, dtype)
    for part in blocks(len(X), max(shift.size, 1)):
        block = np.array(X[part], dtype=np.float64)
        if fill is not None:
            block = filled(block, fill)
        block -= shift
        block /= scale
        out[part] = block
    return out


def filled(X: Any, fill: Float) -> Any:
    """X in float64 with its missing values replaced by those of ``fill``, one a column."""
    if not is_sparse(X):
        return np.where(np.isnan(X), fill, X)
    values = X.data.astype(np.float64)
    gone = np.isnan(values)
    values[gone] = fill[X.indices[gone]]
    return type(X)((values, X.indices, X.indptr), shape=X.shape)
