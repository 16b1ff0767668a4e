"""The Huber loss: squares near zero, absolute values far away, for targets with outliers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from unpooled._validation import is_number
from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel
from unpooled.losses.base import DOMAIN, LinearLoss

FLAT = 0.01  # the part of its majorising curvature that an outlier keeps


class HuberRecord(NamedTuple):
    """ℓ(z, y) = c(r − c/2) with r = z − y and c = r clipped to [−δ, δ]."""

    delta: float

    @kernel
    def value(self, z: Array, y: float) -> Any:
        """ℓ(z, y)."""
        r = z[0] - y
        clipped = min(max(r, -self.delta), self.delta)
        return clipped * (r - 0.5 * clipped)

    @kernel
    def residual(self, z: Array, y: float) -> None:
        """z ← dℓ/dz."""
        z[0] = min(max(z[0] - y, -self.delta), self.delta)


@dataclass(frozen=True)
class Huber(LinearLoss):
    """ℓ = r²/2 where |r| ≤ δ and δ|r| − δ²/2 beyond, r = x·w − y."""

    delta: float = 1.35

    def __post_init__(self) -> None:
        if not is_number(self.delta) or not 0 < self.delta < np.inf:
            raise ValueError(f"delta must be a positive number, got {self.delta!r}")

    def record(self) -> HuberRecord:
        """The compiled side."""
        return HuberRecord(float(self.delta))

    def curvature(self, y: Array) -> Array:
        """ℓ'' ≤ 1."""
        return np.ones(len(y))

    def values(self, Z: Array, y: Array) -> Array:
        """c(r − c/2), r = z − y, c = r clipped to [−δ, δ]."""
        r = Z[:, 0] - y
        c = np.clip(r, -self.delta, self.delta)
        return np.asarray(c * (r - 0.5 * c))

    def residuals(self, Z: Array, y: Array) -> Array:
        """r clipped."""
        return np.asarray(np.clip(Z - y[:, None], -self.delta, self.delta))

    def second_derivative(self, Z: Array, y: Array) -> Array:
        """1 where |r| ≤ δ. Beyond, where ℓ'' = 0, a part of the majorising δ/|r|: a model that is flat in
        the direction of an outlier would send the next point anywhere.
        """
        size = np.maximum(np.abs(Z - y[:, None]), self.delta)
        return np.where(size > self.delta, FLAT * self.delta / size, 1.0)

    def conjugate(self, U: Array, y: Array) -> Array:
        """½u² + uy for |u| ≤ δ."""
        u = U[:, 0]
        inside = np.abs(u) <= self.delta * (1.0 + DOMAIN)
        return np.where(inside, u * (0.5 * u + y), np.inf)

    def balance(
        self, conjugate: float, G: Array, mean: Array, x: Array, t: Array, xt: Array
    ) -> tuple[float, Array, float]:
        """u' = u − mean, which leaves [−δ, δ] by at most the mean."""
        u = float(mean[0])
        return conjugate - 0.5 * u * u - u * float(t[0]), G - u * x, self.delta / (self.delta + abs(u))
