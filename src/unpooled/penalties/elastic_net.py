"""The elastic net: R(w) = ρ‖w‖₁ + (1 − ρ)/2·‖w‖², ρ the ``l1_ratio``."""

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
from unpooled.penalties.inputs import finite_array, finite_number, number
from unpooled.penalties.multipliers import solve
from unpooled.penalties.weighted import WeightedRecord
from unpooled.penalties.weights import flat_weights, parsed, said, spread, without


class ElasticNetRecord(NamedTuple):
    """λ and ρ."""

    lam: float
    l1_ratio: float

    @kernel
    def entry(self, v: float, step: float) -> float:
        """Soft thresholding by step·λρ, then division by 1 + step·λ(1 − ρ)."""
        t = type(v)(step * self.lam * self.l1_ratio)
        return (v - max(-t, min(t, v))) / type(v)(1.0 + step * self.lam * (1.0 - self.l1_ratio))

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


@dataclass(frozen=True, repr=False)
class ElasticNet(Penalty):
    """h(w) = λ (ρ‖w‖₁ + (1 − ρ)/2·‖w‖²), scaled as in scikit-learn; ρ = ``l1_ratio`` between 0 and 1.

    R is not a norm: R(2w) ≠ 2R(w). The constraint R(w − center) ≤ radius takes it as it stands. ``weights``
    u_j ≥ 0, one per feature (or an array of w's shape), multiply both parts; 0 leaves a coefficient
    unpenalised, None is 1 for all.
    """

    lam: float
    l1_ratio: float
    weights: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "lam", finite_number("lam", self.lam, 0.0))
        object.__setattr__(self, "l1_ratio", number("l1_ratio", self.l1_ratio, 0.0, 1.0))
        object.__setattr__(self, "weights", parsed(self.weights))

    def __repr__(self) -> str:
        return f"ElasticNet(lam={self.lam!r}, l1_ratio={self.l1_ratio!r}{said(self.weights)})"

    def norm(self, w: ArrayLike) -> float:
        """R(w) = Σ_j u_j (ρ|w_j| + (1 − ρ)/2·w_j²); not a norm."""
        w = finite_array("w", w).astype(np.float64)
        u = 1.0 if self.weights is None else spread(self.weights, w.shape)
        lasso, ridge = (u * np.abs(w)).sum(), (u * np.square(w)).sum()
        return float(self.l1_ratio * lasso + 0.5 * (1.0 - self.l1_ratio) * ridge)

    def dual_norm(self, u: ArrayLike) -> float:
        """max_j |u_j| / ρ, over the weights: the dual norm of the ℓ1 part.

        Infinite for ρ = 0 and u ≠ 0, and where an unpenalised u_j ≠ 0.
        """
        size = np.abs(finite_array("u", u))
        if self.weights is not None and size[spread(self.weights, size.shape) == 0.0].any():
            return math.inf
        return self.lambda_max(size)

    def lambda_max(self, gradient_at_zero: ArrayLike) -> float:
        """As the dual norm, of the penalised coordinates: the others are taken to be fitted."""
        size = np.abs(finite_array("gradient_at_zero", gradient_at_zero))
        if self.weights is not None:
            weights = spread(self.weights, size.shape)
            size = size[weights > 0.0] / weights[weights > 0.0]
        largest = float(size.max(initial=0.0))
        if largest == 0.0:
            return 0.0
        return largest / self.l1_ratio if self.l1_ratio > 0.0 else math.inf

    def record(self, shape: tuple[int, ...], order: Order = "C") -> ElasticNetRecord | WeightedRecord:
        """See Penalty.record."""
        if self.weights is None:
            return ElasticNetRecord(self.lam, self.l1_ratio)
        return WeightedRecord(self.lam, self.l1_ratio, spread(self.weights, shape).ravel(order=order))

    def blocks(self, shape: tuple[int, ...], order: Order) -> Blocks:
        """Every coordinate by itself, with the weight λρu_j and the ridge λ(1 − ρ)u_j."""
        u = flat_weights(self.weights, shape, order)
        return Blocks(np.arange(u.size), self.lam * self.l1_ratio * u, self.lam * (1.0 - self.l1_ratio) * u)

    def unpenalised(self, shape: tuple[int, ...]) -> Array:
        """Those of weight zero."""
        return np.asarray(flat_weights(self.weights, shape, "C").reshape(shape) == 0.0)

    def leaving_free(self, columns: Sequence[int], row_shape: tuple[int, ...]) -> Self:
        """The same penalty with weight zero for these features."""
        return replace(self, weights=without(self.weights, columns, row_shape))
