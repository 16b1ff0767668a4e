"""Poisson regression with a log link, for counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel
from unpooled.losses.base import LinearLoss


class PoissonRecord(NamedTuple):
    """ℓ(z, y) = scale·(e^z − yz), scale = 1."""

    scale: float = 1.0

    @kernel
    def value(self, z: Array, y: float) -> Any:
        """ℓ(z, y)."""
        return self.scale * (np.exp(z[0]) - y * z[0])

    @kernel
    def residual(self, z: Array, y: float) -> None:
        """z ← dℓ/dz."""
        z[0] = self.scale * (np.exp(z[0]) - y)


@dataclass(frozen=True)
class Poisson(LinearLoss):
    """ℓ = e^{x·w} − y x·w, for counts y ≥ 0 with mean e^{x·w}."""

    def record(self) -> PoissonRecord:
        """The compiled side."""
        return PoissonRecord()

    def curvature(self, y: Array) -> Array:
        """max(y, 1): ℓ'' = e^z has no global bound; this one holds where fitted means stay below it."""
        return np.maximum(np.asarray(y, dtype=np.float64), 1.0)

    def check_targets(self, y: Array) -> str | None:
        """Counts are not negative."""
        return f"Poisson needs targets ≥ 0, got {y.min():g}" if y.min() < 0 else None
