"""The record of ℓ1 and elastic net with weights: h(w) = λ Σ_j u_j (ρ|w_j| + (1 − ρ)/2·w_j²).

Kept apart from the records without weights, whose loops stay as short as they are.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel
from unpooled.penalties.base import entry_at
from unpooled.penalties.multipliers import solve


class WeightedRecord(NamedTuple):
    """λ, ρ and the flat u."""

    lam: float
    l1_ratio: float
    weights: Array

    @kernel
    def entry_at(self, j: int, v: float, step: float) -> Any:
        """The prox of coordinate j: soft thresholding by step·λρu_j, over 1 + step·λ(1 − ρ)u_j."""
        scale = step * self.lam * self.weights[j]
        t = scale * self.l1_ratio
        return (v - max(-t, min(t, v))) / (1.0 + scale * (1.0 - self.l1_ratio))

    @kernel
    def prox(self, v: Array, step: float, out: Array) -> None:
        """The same for every entry."""
        for j in range(v.size):
            out[j] = entry_at(self, j, v[j], step)

    @kernel
    def at_multiplier(
        self, v: Array, step: float, center: Array, shrink: float, theta: float, out: Array
    ) -> tuple[float, float, float]:
        """argmin ½‖w − s v‖² + s·step·λR(w) + θR(w − c), coordinate by coordinate, as for the elastic net.

        An unpenalised coordinate goes to s v_j whatever θ is.
        """
        lam = shrink * step * self.lam
        distance, slope, square = 0.0, 0.0, 0.0
        for j in range(v.size):
            u = self.weights[j]
            lasso, ridge = u * self.l1_ratio, u * (1.0 - self.l1_ratio)
            curvature = 1.0 + ridge * (lam + theta)
            t, pull = lasso * lam, lasso * theta
            sign = -1.0 if center[j] < 0.0 else 1.0
            b = sign * center[j]
            x = sign * shrink * v[j] + theta * ridge * b
            w = max(
                (x - t - pull) / curvature,
                min(b, max((x - t + pull) / curvature, min(0.0, (x + t + pull) / curvature))),
            )
            d = abs(w - b)
            rate = lasso + ridge * d
            distance += d * (lasso + 0.5 * ridge * d)
            slope -= 0.0 if w == b or (w == 0.0 and t > 0.0) else rate * rate / curvature
            square += w * w
            out[j] = sign * w
        return distance, slope, square

    @kernel
    def pinned(self, v: Array, center: Array, shrink: float, out: Array) -> float:
        """The point at distance zero from the center: unpenalised coordinates have no distance."""
        square = 0.0
        for j in range(v.size):
            out[j] = center[j] if self.weights[j] > 0.0 else shrink * v[j]
            square += out[j] * out[j]
        return math.sqrt(square)

    @kernel
    def constrained_prox(
        self, v: Array, step: float, center: Array, radius: float, ball: float, out: Array
    ) -> None:
        """See Penalty.constrained_prox; exact."""
        solve(self, v, step, center, radius, ball, out)

    @kernel
    def subgradient(self, w: Array, out: Array) -> None:
        """λ u_j (ρ sign(w_j) + (1 − ρ) w_j)."""
        for j in range(w.size):
            slope = self.l1_ratio * np.sign(w[j]) + (1.0 - self.l1_ratio) * w[j]
            out[j] = self.lam * self.weights[j] * slope
