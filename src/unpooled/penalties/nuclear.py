"""The nuclear norm: R(W) = Σ_i σ_i(W), the sum of the singular values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from unpooled.arrays import Array
from unpooled.kernel import kernel
from unpooled.penalties.base import Order, Penalty, prox
from unpooled.penalties.inputs import finite_array, finite_number, flat, number, positive_number
from unpooled.penalties.l1 import L1Record
from unpooled.penalties.multipliers import norm2
from unpooled.penalties.nuclear_ball import composed, thin_svd
from unpooled.penalties.nuclear_solve import solve_nuclear


class NuclearRecord(NamedTuple):
    """λ; the flat vector is a matrix of ``rows`` × ``columns``, row by row."""

    lam: float
    rows: int
    columns: int

    @kernel
    def prox(self, v: Array, step: float, out: Array) -> None:
        """Soft thresholding of the singular values."""
        if not math.isfinite(norm2(v)):  # LAPACK would raise
            out[:] = np.nan
            return
        V = np.empty((self.rows, self.columns))
        V.reshape(-1)[:] = v
        left, sigma, right = thin_svd(V)
        shrunk = np.empty_like(sigma)
        prox(L1Record(self.lam), sigma, step, shrunk)
        out[:] = composed(left, shrunk, right).reshape(-1)

    @kernel
    def constrained_prox(
        self, v: Array, step: float, center: Array, radius: float, ball: float, out: Array
    ) -> None:
        """See Penalty.constrained_prox; to a certified gap (``nuclear_solve``)."""
        solve_nuclear(v, step * self.lam, center, radius, ball, self.rows, self.columns, out)

    @kernel
    def subgradient(self, w: Array, out: Array) -> None:
        """λUVᵀ over the singular values that are not zero to rounding."""
        if not math.isfinite(norm2(w)):
            out[:] = np.nan
            return
        W = np.empty((self.rows, self.columns))
        W.reshape(-1)[:] = w
        left, sigma, right = thin_svd(W)
        negligible = max(self.rows, self.columns) * 2.0**-52 * sigma[0]
        for i in range(sigma.size):
            sigma[i] = self.lam if sigma[i] > negligible else 0.0
        out[:] = composed(left, sigma, right).reshape(-1)


@dataclass(frozen=True)
class Nuclear(Penalty):
    """h(W) = λ Σ_i σ_i(W): a matrix of low rank."""

    lam: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "lam", finite_number("lam", self.lam, 0.0))

    def norm(self, w: ArrayLike) -> float:
        """R(W) = Σ_i σ_i(W)."""
        return float(_singular_values("w", w).sum())

    def dual_norm(self, u: ArrayLike) -> float:
        """The operator norm, max_i σ_i(U)."""
        return float(_singular_values("u", u).max(initial=0.0))

    def record(self, shape: tuple[int, ...], order: Order = "C") -> NuclearRecord:
        """See Penalty.record. A matrix column by column is its transpose row by row: R is the same."""
        if len(shape) != 2:
            raise ValueError(f"the nuclear norm is one of matrices: the coefficients have shape {shape}")
        rows, columns = shape if order == "C" else shape[::-1]
        return NuclearRecord(self.lam, rows, columns)

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
