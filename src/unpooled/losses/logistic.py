"""Binary logistic regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel
from unpooled.losses.base import LinearLoss, entropy, mixed

ROUNDING = 1e-13  # of a share of labels


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

    is_smooth: ClassVar[bool] = True
    has_known_noise: ClassVar[bool] = True

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

    def values(self, Z: Array, y: Array) -> Array:
        """log(1 + e^z) − tz, t = [y > 0]."""
        return np.logaddexp(0.0, np.where(y > 0, -Z[:, 0], Z[:, 0]))

    def residuals(self, Z: Array, y: Array) -> Array:
        """σ(z) − t."""
        return self.mean(Z) - self.targets(y)

    def second_derivative(self, Z: Array, y: Array) -> Array:
        """σ(1 − σ)."""
        return 0.25 / np.square(np.cosh(np.clip(0.5 * Z, -300.0, 300.0)))

    def conjugate(self, U: Array, y: Array) -> Array:
        """q log q + (1 − q) log(1 − q), q = u + t."""
        q = (U + self.targets(y))[:, 0]
        return entropy(q) + entropy(1.0 - q)

    def deviance(self, loss: Any, n_rows: int) -> Any:
        """Twice the loss of all rows."""
        return 2.0 * n_rows * loss

    def targets(self, y: Array, n_outputs: int = 1) -> Array:
        """[y > 0]."""
        return (y > 0).astype(np.float64)[:, None]

    def mean(self, Z: Array) -> Array:
        """σ(z), by tanh, which does not overflow."""
        return 0.5 + 0.5 * np.tanh(0.5 * Z)

    def link(self, t: Array) -> Array:
        """log(t/(1 − t))."""
        if not ROUNDING < t[0] < 1.0 - ROUNDING:  # t is a sum of shares
            raise ValueError(
                f"every label of every client is {'positive' if t[0] > 0.5 else 'negative'}: "
                "with one class the intercept has no finite optimum"
            )
        return np.log(t / (1.0 - t))

    def constant_loss(self, z: Array, t: Array, yy: float) -> float:
        """log(1 + e^z) − tz."""
        return float(np.logaddexp(0.0, z[0]) - t[0] * z[0])

    def balance(
        self, conjugate: float, G: Array, mean: Array, x: Array, t: Array, xt: Array
    ) -> tuple[float, Array, float]:
        """A mixture with a constant prediction, of the two classes."""
        mu = mean + t
        return mixed(conjugate, G, np.append(mu, 1.0 - mu), np.append(t, 1.0 - t), x, xt, slice(1))

    def mean_rows(self, mean: Array) -> tuple[Array, Array]:
        """A row of each class."""
        return np.array([1.0, 0.0]), np.append(mean, 1.0 - mean)
