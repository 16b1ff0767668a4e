"""The elastic net: R(w) = ρ‖w‖₁ + (1 − ρ)/2·‖w‖², ρ the ``l1_ratio``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from unpooled.arrays import Array
from unpooled.kernel import kernel
from unpooled.penalties.base import Order, Penalty, entry
from unpooled.penalties.inputs import finite_array, finite_number, number
from unpooled.penalties.multipliers import solve


class ElasticNetRecord(NamedTuple):
    """λ and ρ."""

    lam: float
    l1_ratio: float

    @kernel
    def entry(self, v: float, step: float) -> float:
        """Soft thresholding by step·λρ, then division by 1 + step·λ(1 − ρ)."""
        t = step * self.lam * self.l1_ratio
        return (v - max(-t, min(t, v))) / (1.0 + step * self.lam * (1.0 - self.l1_ratio))

    @kernel
    def prox(self, v: Array, step: float, out: Array) -> None:
        """The same for every entry."""
        for j in range(v.size):
            out[j] = entry(self, v[j], step)

    @kernel
    def at_multiplier(
        self, v: Array, step: float, center: Array, shrink: float, theta: float, out: Array
    ) -> tuple[float, float, float]:
        """argmin ½‖w − s v‖² + s·step·λR(w) + θR(w − c), coordinate by coordinate.

        The squares add (1 − ρ)(s·step·λ + θ) to the curvature and θ(1 − ρ)c to the target; what is left is
        the clip of the ℓ1 norm.
        """
        ridge = 1.0 - self.l1_ratio
        lam = shrink * step * self.lam
        curvature = 1.0 + ridge * (lam + theta)
        t, pull = self.l1_ratio * lam, self.l1_ratio * theta
        distance, slope, square = 0.0, 0.0, 0.0
        for j in range(v.size):
            sign = -1.0 if center[j] < 0.0 else 1.0
            b = sign * center[j]
            x = sign * shrink * v[j] + theta * ridge * b
            w = max(
                (x - t - pull) / curvature,
                min(b, max((x - t + pull) / curvature, min(0.0, (x + t + pull) / curvature))),
            )
            d = abs(w - b)
            rate = self.l1_ratio + ridge * d
            distance += d * (self.l1_ratio + 0.5 * ridge * d)
            # A coordinate at 0 waits there only if the ℓ1 part has a kink.
            slope -= 0.0 if w == b or (w == 0.0 and t > 0.0) else rate * rate / curvature
            square += w * w
            out[j] = sign * w
        return distance, slope, square

    @kernel
    def constrained_prox(
        self, v: Array, step: float, center: Array, radius: float, ball: float, out: Array
    ) -> None:
        """See Penalty.constrained_prox; exact."""
        solve(self, v, step, center, radius, ball, out)

    @kernel
    def subgradient(self, w: Array, out: Array) -> None:
        """λ (ρ sign(w_j) + (1 − ρ) w_j)."""
        for j in range(w.size):
            out[j] = self.lam * (self.l1_ratio * np.sign(w[j]) + (1.0 - self.l1_ratio) * w[j])


@dataclass(frozen=True)
class ElasticNet(Penalty):
    """h(w) = λ (ρ‖w‖₁ + (1 − ρ)/2·‖w‖²), scaled as in scikit-learn; ρ = ``l1_ratio`` between 0 and 1.

    R is not a norm: R(2w) ≠ 2R(w). The constraint R(w − center) ≤ radius takes it as it stands.
    """

    lam: float
    l1_ratio: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "lam", finite_number("lam", self.lam, 0.0))
        object.__setattr__(self, "l1_ratio", number("l1_ratio", self.l1_ratio, 0.0, 1.0))

    def norm(self, w: ArrayLike) -> float:
        """R(w) = ρ‖w‖₁ + (1 − ρ)/2·‖w‖²; not a norm."""
        w = finite_array("w", w).astype(np.float64)
        return float(self.l1_ratio * np.abs(w).sum() + 0.5 * (1.0 - self.l1_ratio) * np.square(w).sum())

    def dual_norm(self, u: ArrayLike) -> float:
        """max_j |u_j| / ρ, the dual norm of the ℓ1 part; infinite for ρ = 0 and u ≠ 0."""
        largest = float(np.abs(finite_array("u", u)).max(initial=0.0))
        if largest == 0.0:
            return 0.0
        return largest / self.l1_ratio if self.l1_ratio > 0.0 else math.inf

    def record(self, shape: tuple[int, ...], order: Order = "C") -> ElasticNetRecord:
        """See Penalty.record."""
        return ElasticNetRecord(self.lam, self.l1_ratio)
