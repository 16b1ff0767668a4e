"""No penalty: R = 0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel
from unpooled.penalties.base import Order, Penalty
from unpooled.penalties.blocks import Blocks
from unpooled.penalties.inputs import finite_array, finite_number


class ZeroRecord(NamedTuple):
    """R = 0; the field is there because numba wants a record to have one."""

    lam: float

    @kernel
    def entry(self, v: float, step: float) -> float:
        """w = v."""
        return v

    @kernel
    def prox(self, v: Array, step: float, out: Array) -> None:
        """No penalty: w = v."""
        for j in range(v.size):
            out[j] = v[j]

    @kernel
    def constrained_prox(
        self, v: Array, step: float, center: Array, radius: float, ball: float, out: Array
    ) -> None:
        """The projection of v on the ℓ2 ball: R(w − center) = 0 satisfies every radius."""
        square = 0.0
        for j in range(v.size):
            square += v[j] * v[j]
        norm = math.sqrt(square)
        scale = ball / norm if norm > ball else 1.0
        for j in range(v.size):
            out[j] = scale * v[j]

    @kernel
    def subgradient(self, w: Array, out: Array) -> None:
        """0."""
        for j in range(w.size):
            out[j] = 0.0


@dataclass(frozen=True)
class Zero(Penalty):
    """h(w) = 0: the loss alone decides."""

    lam: float = field(default=0.0, init=False, repr=False)

    def norm(self, w: ArrayLike) -> float:
        """R(w) = 0."""
        finite_array("w", w)
        return 0.0

    def dual_norm(self, u: ArrayLike) -> float:
        """0 for u = 0, else infinity."""
        return math.inf if np.any(finite_array("u", u)) else 0.0

    def with_lam(self, lam: float) -> Self:
        """This penalty: λ·0 is 0."""
        finite_number("lam", lam, 0.0)
        return self

    def record(self, shape: tuple[int, ...], order: Order = "C") -> ZeroRecord:
        """See Penalty.record."""
        return ZeroRecord(0.0)

    def blocks(self, shape: tuple[int, ...], order: Order) -> Blocks:
        """Every coordinate by itself, without a penalty."""
        n = math.prod(shape)
        return Blocks(np.arange(n), np.zeros(n), np.zeros(n))

    def leaving_free(self, columns: Sequence[int], row_shape: tuple[int, ...]) -> Self:
        """This penalty: all columns are free."""
        return self
