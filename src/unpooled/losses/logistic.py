"""Binary logistic regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel
from unpooled.losses.base import LinearLoss


class LogisticRecord(NamedTuple):
    """ℓ(z, y) = scale·log(1 + e^{−m}), m = z where y > 0 and −z elsewhere; scale = 1."""

    scale: float = 1.0

    @kernel
    def value(self, z: Array, y: float) -> Any:
        """ℓ(z, y), without overflow for margins of either sign."""
        m = z[0] if y > 0 else -z[0]
        return self.scale * (np.log1p(np.exp(-abs(m))) + max(-m, 0.0))

    @kernel
    def residual(self, z: Array, y: float) -> None:
        """z ← dℓ/dz = σ(z) − [y > 0]; σ by tanh, which does not overflow."""
        z[0] = self.scale * (0.5 + 0.5 * np.tanh(0.5 * z[0]))
        if y > 0:
            z[0] -= self.scale


@dataclass(frozen=True)
class Logistic(LinearLoss):
    """ℓ = log(1 + e^{x·w}) − y x·w for labels y in {0, 1}; {−1, +1} mean the same."""

    def record(self) -> LogisticRecord:
        """The compiled side."""
        return LogisticRecord()

    def curvature(self, y: Array) -> Array:
        """ℓ'' = σ(1 − σ) ≤ 1/4."""
        return np.full(len(y), 0.25)

    def check_targets(self, y: Array) -> str | None:
        """Labels are 0/1 or −1/+1."""
        labels = np.unique(y)
        if set(labels) <= {0.0, 1.0} or set(labels) <= {-1.0, 1.0}:
            return None
        shown = ", ".join(f"{label:g}" for label in labels[:5])
        return f"Logistic needs labels in {{0, 1}} or {{-1, 1}}, got {shown}; Softmax takes more classes"
