"""A user's own loss in plain NumPy, in the place of a compiled record: local loops then run uncompiled."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import numpy as np

from unpooled._validation import is_sparse
from unpooled.kernels.arrays import Array
from unpooled.kernels.layout import Layout


class PlainLoss(NamedTuple):
    """A loss object with ``value(w, X, y)`` and ``gradient(w, X, y)``, perhaps with ``sample_weight``."""

    loss: Any

    def value(self, X: Any, y: Array, weight: Array | None, w: Array, intercept: Any = None) -> float:
        """The loss of some rows at w."""
        X, w = _extended(X, w, intercept)
        return float(self.loss.value(w, X, y, *_weight(self.loss.value, weight)))

    def extended_gradient(
        self, X: Any, y: Array, weight: Array | None, w: Array, intercept: Any = None
    ) -> Array:
        """The gradient over some rows at w; the intercept's part is its last entry."""
        X, w = _extended(X, w, intercept)
        return self._gradient(w, X, y, weight)

    def gradient(self, rows: PlainRows, batch: Array, w: Array, Z: Array, G: Array) -> None:
        """G ← the mean gradient over the batch, for flat w."""
        shaped = np.asarray(w, dtype=np.float64)
        if rows.layout.n_intercepts == 0:
            shaped = shaped.reshape(rows.layout.shape)
        X = rows.X[batch]
        if rows.layout.n_intercepts:
            X = with_ones(X)
        weight = rows.weight[batch] if rows.weight.size else None
        G[:] = self._gradient(shaped, X, rows.y[batch], weight).reshape(-1)

    def _gradient(self, w: Array, X: Any, y: Array, weight: Array | None) -> Array:
        gradient = np.asarray(self.loss.gradient(w, X, y, *_weight(self.loss.gradient, weight)), np.float64)
        if gradient.shape != w.shape:
            name = type(self.loss).__name__
            raise ValueError(f"{name}.gradient returned shape {gradient.shape} for w of shape {w.shape}")
        return gradient


class PlainRows(NamedTuple):
    """The rows as a plain loss gets them: arrays of their own shape, or CSR."""

    X: Any
    y: Array
    weight: Array
    layout: Layout


def with_ones(X: Any) -> Any:
    """X with a column of ones behind the others; matrix rows are flattened."""
    if is_sparse(X):
        from scipy import sparse

        ones = sparse.csr_array(np.ones((X.shape[0], 1), X.dtype))
        return sparse.hstack([X, ones], format="csr")
    X = np.asarray(X).reshape(len(X), -1)
    return np.column_stack([X, np.ones(len(X), X.dtype)])


def _extended(X: Any, w: Array, intercept: Any) -> tuple[Any, Array]:
    if intercept is None:
        return X, np.asarray(w, dtype=np.float64)
    return with_ones(X), np.append(np.asarray(w, dtype=np.float64).ravel(), intercept)


def _weight(function: Any, weight: Array | None) -> tuple[Array, ...]:
    """The extra argument for data with sample weights, refused where the function has no place for it."""
    if weight is None:
        return ()
    if len(inspect.signature(function).parameters) < 4:
        raise TypeError(
            f"the data has sample weights, but {function.__qualname__} takes only (w, X, y); "
            "give it a fourth argument sample_weight"
        )
    return (weight,)
