"""Poisson regression with a log link, for counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel
from unpooled.losses.base import FAR, LinearLoss, entropy


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
    """ℓ = e^{x·w} − y x·w, for counts y ≥ 0 with mean e^{x·w}.

    Counts are often more dispersed than Poisson's: ``has_known_noise`` is not claimed.
    """

    is_smooth: ClassVar[bool] = True

    def record(self) -> PoissonRecord:
        """The compiled side."""
        return PoissonRecord()

    def curvature(self, y: Array) -> Array:
        """max(y, 1): ℓ'' = e^z has no global bound; this one holds where fitted means stay below it."""
        return np.maximum(np.asarray(y, dtype=np.float64), 1.0)

    def check_targets(self, y: Array) -> str | None:
        """Counts are not negative."""
        return f"Poisson needs targets ≥ 0, got {y.min():g}" if y.min() < 0 else None

    def values(self, Z: Array, y: Array) -> Array:
        """e^z − yz."""
        return np.asarray(np.exp(Z[:, 0]) - y * Z[:, 0])

    def residuals(self, Z: Array, y: Array) -> Array:
        """e^z − y."""
        return np.asarray(np.exp(Z) - y[:, None])

    def second_derivative(self, Z: Array, y: Array) -> Array:
        """e^z."""
        return np.exp(Z)

    def conjugate(self, U: Array, y: Array) -> Array:
        """μ log μ − μ, μ = u + y."""
        mu = U[:, 0] + y
        return np.asarray(entropy(mu) - np.maximum(mu, 0.0))

    def deviance(self, loss: Any, n_rows: int) -> Any:
        """Twice the loss of all rows."""
        return 2.0 * n_rows * loss

    def mean(self, Z: Array) -> Array:
        """e^z."""
        return np.exp(Z)

    def link(self, t: Array) -> Array:
        """log t."""
        if not t[0] > 0.0:
            raise ValueError("every count of every client is 0: the intercept has no finite optimum")
        return np.log(t)

    def constant_loss(self, z: Array, t: Array, yy: float) -> float:
        """e^z − tz."""
        return float(np.exp(z[0]) - t[0] * z[0])

    def balance(
        self, conjugate: float, G: Array, mean: Array, x: Array, t: Array, xt: Array
    ) -> tuple[float, Array, float]:
        """μ' = cμ."""
        mu = float(mean[0] + t[0])
        c = float(t[0] / mu)
        return c * conjugate + (c * np.log(c) * mu if c > 0 else 0.0), c * G + (c - 1.0) * xt, 1.0

    def intercept(self, Z: Array, y: Array, share: Array) -> Array:
        """The log of Σ y over Σ e^z."""
        top, mean = float(Z.max()), float(share @ y)
        if mean == 0.0:
            return np.array([-FAR - float(np.abs(Z).max())])
        return np.array([np.log(mean) - np.log(share @ np.exp(Z[:, 0] - top)) - top])
