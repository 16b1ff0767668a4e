"""Rows (x − shift)/scale with missing values filled, dense or CSR."""

from __future__ import annotations

from typing import Any

import numpy as np

from unpooled.arrays import Float
from unpooled.validation import blocks, is_sparse


def transformed(X: Any, shift: Float, scale: Float, fill: Float | None, dtype: Any) -> Any:
    """A new X of this precision, worked out in float64; ``fill`` None leaves no room for missing values."""
    if is_sparse(X):
        values = X.data.astype(np.float64)
        if fill is not None:
            gone = np.isnan(values)
            values[gone] = fill[X.indices[gone]]
        values /= scale[X.indices]
        return type(X)((values.astype(dtype), X.indices, X.indptr), shape=X.shape)
    out = np.empty(X.shape, dtype)
    for part in blocks(len(X), max(shift.size, 1)):
        block = np.array(X[part], dtype=np.float64)
        if fill is not None:
            block = np.where(np.isnan(block), fill, block)
        block -= shift
        block /= scale
        out[part] = block
    return out
