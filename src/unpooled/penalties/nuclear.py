"""The nuclear norm: R(W) = Σ_i σ_i(W), the sum of the singular values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel
from unpooled.kernels.linalg.singular_values import MODERATE, shrunk
from unpooled.kernels.linalg.truncated_svd import shrunk_partially
from unpooled.penalties.base import Order, Penalty, constrained_prox, subgradient
from unpooled.penalties.inputs import finite_array, finite_number, flat, number, positive_number
from unpooled.penalties.multipliers import norm2
from unpooled.penalties.nuclear_solve import filled, solve_nuclear

SMOOTHING = 1e-8  # of the subgradient, relative to ‖w‖


class NuclearRecord(NamedTuple):
    """λ; the flat vector is a matrix of ``rows`` × ``columns``, row by row."""

    lam: float
    rows: int
    columns: int

    @kernel
    def prox(self, v: Array, step: float, out: Array) -> None:
        """Soft thresholding of the singular values."""
        shrunk(v, self.rows, self.columns, step * self.lam, math.inf, out)

    @kernel
    def constrained_prox(
        self, v: Array, step: float, center: Array, radius: float, ball: float, out: Array
    ) -> None:
        """See Penalty.constrained_prox; to a certified gap (``nuclear_solve``)."""
        W = np.empty(v.size)
        solve_nuclear(v, step * self.lam, center, radius, ball, self.rows, self.columns, W)
        for j in range(v.size):
            out[j] = W[j]

    @kernel
    def subgradient(self, w: Array, out: Array) -> None:
        """λUVᵀ over the singular values that are not zero to rounding: (w − SVT(w, δ))·λ/δ, δ tiny."""
        size = norm2(w)
        if not 0.0 < size < math.inf:
            filled(out, 0.0 if size == 0.0 else math.nan)
            return
        width = SMOOTHING * size
        X = np.empty(w.size)
        shrunk(w, self.rows, self.columns, width, math.inf, X)
        for j in range(w.size):
            out[j] = self.lam * (w[j] - X[j]) / width


class LargeNuclearRecord(NamedTuple):
    """The same for a large matrix whose prox is expected to be of low rank."""

    lam: float
    rows: int
    columns: int

    @kernel
    def prox(self, v: Array, step: float, out: Array) -> None:
        """Soft thresholding by the leading singular vectors; by all, where these are many."""
        shrunk_partially(v, self.rows, self.columns, step * self.lam, out)

    @kernel
    def constrained_prox(
        self, v: Array, step: float, center: Array, radius: float, ball: float, out: Array
    ) -> None:
        """As for a matrix of moderate size."""
        constrained_prox(NuclearRecord(self.lam, self.rows, self.columns), v, step, center, radius, ball, out)

    @kernel
    def subgradient(self, w: Array, out: Array) -> None:
        """As for a matrix of moderate size."""
        subgradient(NuclearRecord(self.lam, self.rows, self.columns), w, out)


@dataclass(frozen=True)
class Nuclear(Penalty):
    """h(W) = λ Σ_i σ_i(W): a matrix of low rank."""

    lam: float

    counts_nonzeros: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "lam", finite_number("lam", self.lam, 0.0))

    def norm(self, w: ArrayLike) -> float:
        """R(W) = Σ_i σ_i(W)."""
        return float(_singular_values("w", w).sum())

    def dual_norm(self, u: ArrayLike) -> float:
        """The operator norm, max_i σ_i(U)."""
        return float(_singular_values("u", u).max(initial=0.0))

    def record(self, shape: tuple[int, ...], order: Order = "C") -> NuclearRecord | LargeNuclearRecord:
        """See Penalty.record. A matrix column by column is its transpose row by row: R is the same."""
        if len(shape) != 2:
            raise ValueError(f"the nuclear norm is one of matrices: the coefficients have shape {shape}")
        rows, columns = shape if order == "C" else shape[::-1]
        return (NuclearRecord if min(shape) <= MODERATE else LargeNuclearRecord)(self.lam, rows, columns)

    def constrained_prox_gap(
        self, v: ArrayLike, step: float, center: ArrayLike, radius: float, ball: float = math.inf
    ) -> float:
        """A proven bound on ½‖W − W*‖²: W as ``constrained_prox`` returns it, W* the exact minimiser."""
        v = finite_array("v", v)
        center = finite_array("center", center, v.shape)
        t = finite_number("step", step, 0.0) * self.lam
        radius, ball = number("radius", radius, 0.0), positive_number("ball", ball)
        _, rows, columns = self.record(v.shape)
        gap, _ = solve_nuclear(flat(v), t, flat(center), radius, ball, rows, columns, np.empty(v.size))
        return float(gap)


def _singular_values(name: str, w: ArrayLike) -> Array:
    w = finite_array(name, w)
    if w.ndim != 2:
        raise ValueError(f"{name} has shape {w.shape}: the nuclear norm is one of matrices")
    return np.linalg.svd(w.astype(np.float64), compute_uv=False)
