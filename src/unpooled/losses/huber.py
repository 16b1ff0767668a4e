"""The Huber loss: squares near zero, absolute values far away, for targets with outliers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from unpooled._validation import is_number
from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel
from unpooled.losses.base import LinearLoss


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
