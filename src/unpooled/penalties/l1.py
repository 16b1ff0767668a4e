"""The ℓ1 norm: R(w) = Σ_j |w_j|, or Σ_j u_j |w_j| with weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel
from unpooled.penalties.base import Order, Penalty, entry
from unpooled.penalties.blocks import Blocks
from unpooled.penalties.inputs import finite_array, finite_number
from unpooled.penalties.multipliers import solve
from unpooled.penalties.weighted import WeightedRecord
from unpooled.penalties.weights import flat_weights, parsed, said, spread, without


class L1Record(NamedTuple):
    """λ."""

    lam: float

    @kernel
    def entry(self, v: float, step: float) -> float:
        """Soft thresholding: v minus its projection on [−t, t], t = step·λ. A NaN stays a NaN."""
        t = type(v)(step * self.lam)
        return v - max(-t, min(t, v))

    @kernel
    def prox(self, v: Array, step: float, out: Array) -> None:
        """Soft thresholding of every entry."""
        for j in range(v.size):
            out[j] = entry(self, v[j], step)

    @kernel
    def at_multiplier(
        self, v: Array, step: float, center: Array, shrink: float, theta: float, out: Array
    ) -> tuple[float, float, float]:
        """argmin ½‖w − s v‖² + s·step·λ‖w‖₁ + θ‖w − c‖₁: a clip, coordinate by coordinate.

        Signs are flipped so that c_j ≥ 0.
        """
        t = shrink * step * self.lam
        distance, moving, square = 0.0, 0.0, 0.0
        for j in range(v.size):
            sign = -1.0 if center[j] < 0.0 else 1.0
            b = sign * center[j]
            x = sign * shrink * v[j]
            w = max(x - t - theta, min(b, max(x - t + theta, min(0.0, x + t + theta))))
            distance += abs(w - b)
            moving += 0.0 if w == b or (w == 0.0 and t > 0.0) else 1.0
            square += w * w
            out[j] = sign * w
        return distance, -moving, square

    @kernel
    def constrained_prox(
        self, v: Array, step: float, center: Array, radius: float, ball: float, out: Array
    ) -> None:
        """See Penalty.constrained_prox; exact."""
        solve(self, v, step, center, radius, ball, out)

    @kernel
    def subgradient(self, w: Array, out: Array) -> None:
        """λ sign(w_j)."""
        for j in range(w.size):
            out[j] = self.lam * np.sign(w[j])


@dataclass(frozen=True, repr=False)
class L1(Penalty):
    """h(w) = λ Σ_j u_j |w_j|: sparse coefficients.

    ``weights`` are the u_j ≥ 0, one per feature (or an array of w's shape); 0 leaves a coefficient
    unpenalised, None is 1 for all. They are taken as they are, not rescaled.
    """

    lam: float
    weights: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "lam", finite_number("lam", self.lam, 0.0))
        object.__setattr__(self, "weights", parsed(self.weights))

    def __repr__(self) -> str:
        return f"L1(lam={self.lam!r}{said(self.weights)})"

    def norm(self, w: ArrayLike) -> float:
        """R(w) = Σ_j u_j |w_j|."""
        size = np.abs(finite_array("w", w))
        if self.weights is not None:
            size = size * spread(self.weights, size.shape)
        return float(size.sum(dtype=np.float64))

    def dual_norm(self, u: ArrayLike) -> float:
        """max_j |u_j| over the weights; infinite where an unpenalised u_j ≠ 0."""
        size = np.abs(finite_array("u", u))
        if self.weights is not None:
            free = spread(self.weights, size.shape) == 0.0
            return math.inf if size[free].any() else self.lambda_max(size)
        return float(size.max(initial=0.0))

    def lambda_max(self, gradient_at_zero: ArrayLike) -> float:
        """max_j |∇_j| over the weights, of the penalised coordinates: the others are taken to be fitted."""
        size = np.abs(finite_array("gradient_at_zero", gradient_at_zero))
        if self.weights is None:
            return float(size.max(initial=0.0))
        weights = spread(self.weights, size.shape)
        return float((size[weights > 0.0] / weights[weights > 0.0]).max(initial=0.0))

    def record(self, shape: tuple[int, ...], order: Order = "C") -> L1Record | WeightedRecord:
        """See Penalty.record."""
        if self.weights is None:
            return L1Record(self.lam)
        return WeightedRecord(self.lam, 1.0, spread(self.weights, shape).ravel(order=order))

    def blocks(self, shape: tuple[int, ...], order: Order) -> Blocks:
        """Every coordinate by itself, with the weight λu_j."""
        weight = self.lam * flat_weights(self.weights, shape, order)
        return Blocks(np.arange(weight.size), weight, np.zeros(weight.size))

    def unpenalised(self, shape: tuple[int, ...]) -> Array:
        """Those of weight zero."""
        return np.asarray(flat_weights(self.weights, shape, "C").reshape(shape) == 0.0)

    def leaving_free(self, columns: Sequence[int], row_shape: tuple[int, ...]) -> Self:
        """The same penalty with weight zero for these features."""
        return replace(self, weights=without(self.weights, columns, row_shape))
