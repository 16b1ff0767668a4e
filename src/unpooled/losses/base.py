"""What a loss is, and how to write your own.

A loss is the smooth part of the problem: for one client with rows (x_i, y_i) and sample weights s_i of
mean one,

    L(w) = (1/n) Σ_i s_i ℓ(x_i, y_i; w).

There are two ways to write one.

**In plain NumPy.** Any object with two methods will do; it runs everywhere, uncompiled:

    class LogCosh:
        def value(self, w, X, y):      # the mean loss, a float
            return np.mean(np.log(np.cosh(X @ w - y)))

        def gradient(self, w, X, y):   # its gradient, of w's shape
            return X.T @ np.tanh(X @ w - y) / len(y)

Both may take a fourth argument ``sample_weight``; they must if the data has weights. With an intercept
they see X with a column of ones behind the others, and w with the intercept as its last entry.

**Compiled.** Losses of linear margins, ℓ(z, y) with z = (x·w_1 + b_1, …, x·w_C + b_C), need only ℓ and
its derivative for one row, as kernels of a record (a NamedTuple whose fields are the loss's numbers):

    class LogCoshRecord(NamedTuple):
        scale: float

        @kernel
        def value(self, z, y):         # ℓ(z, y)
            return self.scale * np.log(np.cosh(z[0] - y))

        @kernel
        def residual(self, z, y):      # z ← dℓ/dz
            z[0] = self.scale * np.tanh(z[0] - y)

    @dataclass(frozen=True)
    class LogCosh(LinearLoss):
        scale: float = 1.0

        def record(self):
            return LogCoshRecord(self.scale)

        def curvature(self, y):        # an upper bound of ℓ'' for each row
            return np.full(len(y), self.scale)

Everything else (values, gradients, smoothness bounds, dense and sparse rows, intercepts, the fused local
loops of every algorithm) follows from these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from unpooled._validation import is_sparse
from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel, method
from unpooled.kernels.products import times, transposed_times
from unpooled.kernels.rows import adjoint, margins

value = method("value")
residual = method("residual")


@kernel
def each_residual(loss: Any, Z: Array, y: Array, weight: Array) -> None:
    """Z[i] ← weight_i dℓ/dz(Z[i], y_i), row by row."""
    for i in range(y.size):
        residual(loss, Z[i], y[i])
        for c in range(Z.shape[1]):
            Z[i, c] *= weight[i]


residuals = method("residuals", default=each_residual)
"""Z[i] ← weight_i dℓ/dz(Z[i], y_i): a record's own ``residuals`` where it does better than row by row."""


@kernel
def linear_gradient(loss: Any, rows: Any, batch: Array, w: Array, Z: Array, G: Array) -> None:
    """G ← (1/b) Σ_{i in batch} s_i ∇_w ℓ(x_i·w, y_i); Z is scratch of shape (b, C)."""
    b = batch.size
    y, weight = np.empty(b, Z.dtype), np.empty(b, Z.dtype)
    for i in range(b):
        y[i] = rows.y[batch[i]]
        weight[i] = (rows.weight[batch[i]] if rows.weight.size > 0 else 1.0) / b
    # Both products go tile by tile: sums of a few rows × outputs (``margins``) or features × outputs
    # (``adjoint``) stay in registers, and what they are made of in the L1 cache while the rest streams by.
    # See ``vector_products`` for the tiles in vectors of the host, ``blocks`` for the same in plain loops.
    margins(rows, batch, w, Z)
    residuals(loss, Z, y, weight)
    adjoint(rows, batch, Z, G)


@kernel
def weighted_total(loss: Any, Z: Array, y: Array, weight: Array) -> float:
    """Σ_i weight_i ℓ(Z[i], y_i)."""
    total = 0.0
    for i in range(y.size):
        total += weight[i] * value(loss, Z[i], y[i])
    return total


gradient = method("gradient", default=linear_gradient)
"""The gradient that local loops call: a record's own ``gradient`` where it has one, else linear."""


class LinearLoss(ABC):
    """A loss ℓ(z, y) of linear margins z = Xw + b. Subclass it, or see the module for plain losses."""

    @abstractmethod
    def record(self) -> NamedTuple | Any:
        """The compiled side: a NamedTuple with kernels ``value(z, y)`` and ``residual(z, y)`` (or its own
        ``residuals`` of many rows).
        """

    @abstractmethod
    def curvature(self, y: Array) -> Array:
        """For each row, an upper bound of the largest eigenvalue of d²ℓ/dz²."""

    is_quadratic: ClassVar[bool] = False
    """Whether ``curvature`` is the curvature itself, not only a bound of it."""

    def outputs(self, y: Array) -> int | None:
        """The number C of margins a row has; None when w is a vector (or one matrix) and z a number."""
        return None

    def check_targets(self, y: Array) -> str | None:
        """What is wrong with the targets, if anything."""
        return None

    def value(
        self, w: Array, X: Any, y: Array, sample_weight: Array | None = None, intercept: Any = None
    ) -> float:
        """The weighted mean loss at w, of shape (p,), (p1, p2) for matrix rows, or (p, C)."""
        y = np.asarray(y, dtype=np.float64)
        weight = _normalised(sample_weight, len(y))
        return float(weighted_total(self.record(), linear_margins(X, w, intercept), y, weight))

    def gradient(
        self, w: Array, X: Any, y: Array, sample_weight: Array | None = None, intercept: Any = None
    ) -> Any:
        """The gradient of ``value``, of w's shape; with an intercept the pair (in w, in the intercept)."""
        y = np.asarray(y, dtype=np.float64)
        Z = linear_margins(X, w, intercept)
        residuals(self.record(), Z, y, _normalised(sample_weight, len(y)))
        in_w = pull_back(X, Z).reshape(np.shape(w))
        if intercept is None:
            return in_w
        in_b = Z.sum(axis=0)
        return in_w, (float(in_b[0]) if np.ndim(intercept) == 0 else in_b)

    def smoothness(
        self, X: Any, y: Array, sample_weight: Array | None = None, iterations: int = 100
    ) -> float:
        """The smoothness L of ``value``: the top eigenvalue of Xᵀ diag(s_i c_i) X / n, by power iteration."""
        from unpooled.kernels.linalg.lanczos import fixed_direction, largest_eigenvalue

        X = X if is_sparse(X) else np.asarray(X).reshape(len(y), -1)
        d = _normalised(sample_weight, len(y)) * self.curvature(np.asarray(y, dtype=np.float64))
        return largest_eigenvalue(lambda u: X.T @ (d * (X @ u)), fixed_direction(X.shape[1]), iterations)


def linear_margins(X: Any, w: Array, intercept: Any = None) -> Array:
    """Z = Xw + b as a float64 array of shape (n, C), C = 1 where w has one output."""
    w = np.asarray(w, dtype=np.float64)
    if not is_sparse(X):
        X = np.asarray(X)
        if X.ndim == 3:
            X, w = X.reshape(len(X), -1), w.reshape(-1)
    if X.shape[1] != w.shape[0]:
        raise ValueError(f"w has shape {w.shape}, but a row has {X.shape[1]} features")
    Z = times(X, w.reshape(X.shape[1], -1))
    return Z if intercept is None else Z + np.atleast_1d(np.asarray(intercept, dtype=np.float64))


def pull_back(X: Any, Z: Array) -> Array:
    """XᵀZ, of shape (p, C)."""
    return transposed_times(X if is_sparse(X) else np.asarray(X).reshape(len(Z), -1), Z)


def _normalised(sample_weight: Array | None, n: int) -> Array:
    """Weights that sum to one."""
    if sample_weight is None:
        return np.full(n, 1.0 / n)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight has shape {weight.shape}, expected ({n},)")
    return np.asarray(weight / weight.sum())
