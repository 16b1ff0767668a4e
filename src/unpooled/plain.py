"""A user's own loss or penalty in plain NumPy, in the place of a compiled record.

Local loops call the same functions on these as on records; the loop itself then runs uncompiled.
"""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unpooled.arrays import Array
from unpooled.regulariser import DualStep, ascend
from unpooled.validation import is_sparse

if TYPE_CHECKING:
    from unpooled.client import Client
    from unpooled.layout import Layout

ENVELOPE = 1e-5  # (w − prox_{sh}(w))/s with s this small is a subgradient of h to about 1e-11


class PlainLoss(NamedTuple):
    """A loss object with ``value(w, X, y)`` and ``gradient(w, X, y)``, perhaps with ``sample_weight``."""

    loss: Any

    def value(self, client: Client, w: Array, intercept: Any = None) -> float:
        """The client's loss at w."""
        X, w = _extended(client.X, w, intercept)
        return float(self.loss.value(w, X, client.y, *_weight(self.loss.value, client.sample_weight)))

    def extended_gradient(self, client: Client, w: Array, intercept: Any = None) -> Array:
        """The client's gradient at w; the intercept's part is its last entry."""
        X, w = _extended(client.X, w, intercept)
        return self._gradient(w, X, client.y, client.sample_weight)

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


class PlainRegulariser(NamedTuple):
    """A penalty object with ``value(w)`` and ``prox(v, step)``, perhaps ``constrained_prox``."""

    penalty: Any
    layout: Layout
    ball: float

    def prox(self, v: Array, step: float, center: Array, radius: float, out: Array) -> None:
        """As ``Regulariser.prox``."""
        w, _ = self.layout.unpack(v)
        n = self.layout.n_coefficients
        if math.isinf(radius) and math.isinf(self.ball):
            w = self.penalty.prox(w, step)
        elif hasattr(self.penalty, "constrained_prox"):
            w = self.penalty.constrained_prox(w, step, self.layout.unpack(center)[0], radius, self.ball)
        else:
            name = type(self.penalty).__name__
            raise TypeError(f"{name} has no constrained_prox, which a finite radius or ball needs")
        out[:n] = np.asarray(w).ravel(order=self.layout.order)
        out[n:] = v[n:]

    def dual_step(self, step: DualStep, h: Array, G: Array, center: Array, v: Array, w: Array) -> None:
        """As ``Regulariser.dual_step``."""
        ascend.py_func(step, h, G, w)
        v[:] = h / -step.c
        self.prox(v, step.A / step.c, center, step.radius, w)

    def subgradient(self, w: Array, out: Array) -> None:
        """As ``Regulariser.subgradient``."""
        n = self.layout.n_coefficients
        point = self.penalty.prox(self.layout.unpack(w)[0], ENVELOPE)
        out[:n] = (w[:n] - np.asarray(point).ravel(order=self.layout.order)) / ENVELOPE
        out[n:] = 0.0


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
