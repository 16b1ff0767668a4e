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

    def record(self) -> SquaredRecord:
        """The compiled side."""
        return SquaredRecord()

    def curvature(self, y: Array) -> Array:
        """ℓ'' = 1."""
        return np.ones(len(y))
