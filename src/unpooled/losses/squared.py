"""Least squares: linear regression and, when rows are matrices, trace regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel
from unpooled.losses.base import LinearLoss


class SquaredRecord(NamedTuple):
    """ℓ(z, y) = half·(z − y)², half = ½."""

    half: float = 0.5

    @kernel
    def value(self, z: Array, y: float) -> Any:
        """ℓ(z, y)."""
        return self.half * (z[0] - y) * (z[0] - y)

    @kernel
    def residual(self, z: Array, y: float) -> None:
        """z ← dℓ/dz."""
        z[0] -= y


@dataclass(frozen=True)
class Squared(LinearLoss):
    """ℓ = ½(x·w − y)²; with rows of shape (p1, p2), x·w is the trace inner product ⟨X, W⟩."""

    is_quadratic: ClassVar[bool] = True
    is_least_squares: ClassVar[bool] = True
    is_smooth: ClassVar[bool] = True
    has_known_noise: ClassVar[bool] = True
    has_dispersion: ClassVar[bool] = True

    def record(self) -> SquaredRecord:
        """The compiled side."""
        return SquaredRecord()

    def curvature(self, y: Array) -> Array:
        """ℓ'' = 1."""
        return np.ones(len(y))

    def values(self, Z: Array, y: Array) -> Array:
        """½(z − y)²."""
        return np.asarray(0.5 * np.square(Z[:, 0] - y))

    def residuals(self, Z: Array, y: Array) -> Array:
        """z − y."""
        return Z - y[:, None]

    def second_derivative(self, Z: Array, y: Array) -> Array:
        """1."""
        return np.ones_like(Z)

    def conjugate(self, U: Array, y: Array) -> Array:
        """½u² + uy."""
        return np.asarray(U[:, 0] * (0.5 * U[:, 0] + y))

    def deviance(self, loss: Any, n_rows: int) -> Any:
        """n log(RSS/n): the variance of the noise is profiled out."""
        return n_rows * np.log(np.maximum(2.0 * loss, 1e-300))

    def mean(self, Z: Array) -> Array:
        """z."""
        return Z

    def link(self, t: Array) -> Array:
        """t."""
        return t

    def constant_loss(self, z: Array, t: Array, yy: float) -> float:
        """½ mean y² − tz + ½z²."""
        return max(0.5 * yy - float(t[0] * z[0]) + 0.5 * float(z[0] ** 2), 0.0)

    def balance(
        self, conjugate: float, G: Array, mean: Array, x: Array, t: Array, xt: Array
    ) -> tuple[float, Array, float]:
        """u' = u − mean."""
        u = float(mean[0])
        return conjugate - 0.5 * u * u - u * float(t[0]), G - u * x, 1.0

    def intercept(self, Z: Array, y: Array, share: Array) -> Array:
        """The mean of y − z."""
        return np.array([share @ (y - Z[:, 0])])
