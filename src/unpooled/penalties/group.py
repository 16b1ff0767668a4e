"""The group norm: R(w) = Σ_g ω_g ‖w_g‖₂."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel
from unpooled.penalties.base import Order, Penalty
from unpooled.penalties.blocks import Blocks
from unpooled.penalties.group_block import toward_center
from unpooled.penalties.group_labels import Labels, codes, flat_codes, parsed
from unpooled.penalties.inputs import finite_array, finite_number
from unpooled.penalties.multipliers import solve


class GroupL2Record(NamedTuple):
    """λ; group g holds the coefficients members[starts[g]:starts[g + 1]] and has weight weights[g]."""

    lam: float
    members: Array
    starts: Array
    weights: Array

    @kernel
    def prox(self, v: Array, step: float, out: Array) -> None:
        """w_g = (1 − step·λω_g/‖v_g‖)₊ v_g."""
        for g in range(self.weights.size):
            square = 0.0
            for i in range(self.starts[g], self.starts[g + 1]):
                square += v[self.members[i]] ** 2
            t, size = step * self.lam * self.weights[g], math.sqrt(square)
            scale = 0.0 if size <= t else 1.0 - t / size
            for i in range(self.starts[g], self.starts[g + 1]):
                out[self.members[i]] = scale * v[self.members[i]]

    @kernel
    def at_multiplier(
        self, v: Array, step: float, center: Array, shrink: float, theta: float, out: Array
    ) -> tuple[float, float, float]:
        """argmin ½‖w − s v‖² + s·step·λR(w) + θR(w − c), group by group (``group_block``)."""
        distance, slope, square = 0.0, 0.0, 0.0
        for g in range(self.weights.size):
            weight, first, end = self.weights[g], self.starts[g], self.starts[g + 1]
            t, pull = shrink * step * self.lam * weight, theta * weight
            bb, bv, rest = 0.0, 0.0, 0.0
            for i in range(first, end):
                j = self.members[i]
                bb += center[j] * center[j]
                bv += center[j] * v[j]
            along = bv / bb if bb > 0.0 else 0.0
            for i in range(first, end):
                j = self.members[i]
                rest += (v[j] - along * center[j]) ** 2
            B, v2 = math.sqrt(bb), shrink * math.sqrt(rest)
            if bb > 0.0:
                x, y, d, rate = toward_center(B, shrink * along * B, v2, t, pull)
            else:
                d = max(v2 - t - pull, 0.0)
                x, y, rate = 0.0, d / v2 if d > 0.0 else 0.0, -1.0 if d > 0.0 else 0.0
            distance += weight * d
            slope += weight * weight * rate
            for i in range(first, end):
                j = self.members[i]
                w = x * center[j] + y * shrink * v[j]
                square += w * w
                out[j] = w
        return distance, slope, square

    @kernel
    def constrained_prox(
        self, v: Array, step: float, center: Array, radius: float, ball: float, out: Array
    ) -> None:
        """See Penalty.constrained_prox; exact."""
        solve(self, v, step, center, radius, ball, out)

    @kernel
    def subgradient(self, w: Array, out: Array) -> None:
        """λω_g w_g/‖w_g‖; 0 for a group that is 0."""
        for g in range(self.weights.size):
            square = 0.0
            for i in range(self.starts[g], self.starts[g + 1]):
                square += w[self.members[i]] ** 2
            scale = 0.0 if square == 0.0 else self.lam * self.weights[g] / math.sqrt(square)
            for i in range(self.starts[g], self.starts[g + 1]):
                out[self.members[i]] = scale * w[self.members[i]]


@dataclass(frozen=True, repr=False)
class GroupL2(Penalty):
    """h(w) = λ Σ_g ω_g ‖w_g‖₂: groups of coefficients enter or leave together.

    ``groups`` is one label per coefficient (integers or strings; a flat list, or an array of w's shape), or a
    list of lists of indices. Labels of shape (p,) also serve coefficients of shape (p, C): a group then spans
    all classes of its features. Groups need not be contiguous.

    ``weights`` is None (ω_g = 1), "sqrt" (ω_g = √size of the group) or one positive number per group, in the
    sorted order of the labels or the given order of the index lists.
    """

    lam: float
    groups: Any
    weights: str | Sequence[float] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "lam", finite_number("lam", self.lam, 0.0))
        object.__setattr__(self, "groups", parsed(self.groups))
        if isinstance(self.weights, str):
            if self.weights != "sqrt":
                raise ValueError(f'weights={self.weights!r}: expected None, "sqrt" or one number per group')
        elif self.weights is not None:
            weights, count = finite_array("weights", self.weights), codes(self.groups)[1]
            if weights.shape != (count,) or not (weights > 0.0).all():
                raise ValueError(
                    f"weights={self.weights!r}: expected {count} positive numbers, one per group"
                )
            object.__setattr__(self, "weights", tuple(float(weight) for weight in weights))

    def __repr__(self) -> str:
        of, count = codes(self.groups)
        if of.size > 12:
            groups = f"<{count} groups of {of.size} coefficients>"
        elif isinstance(self.groups, Labels):
            groups = repr(np.array(self.groups.names).reshape(self.groups.shape).tolist())
        else:
            groups = repr([list(indices) for indices in self.groups])
        many = isinstance(self.weights, tuple) and count > 12
        weights = f"<{count} weights>" if many else repr(self.weights)
        return f"GroupL2(lam={self.lam!r}, groups={groups}, weights={weights})"

    def norm(self, w: ArrayLike) -> float:
        """R(w) = Σ_g ω_g ‖w_g‖₂."""
        norms, weights = self._group_norms(finite_array("w", w))
        return float(weights @ norms)

    def dual_norm(self, u: ArrayLike) -> float:
        """max_g ‖u_g‖₂ / ω_g."""
        norms, weights = self._group_norms(finite_array("u", u))
        return float((norms / weights).max())

    def record(self, shape: tuple[int, ...], order: Order = "C") -> GroupL2Record:
        """See Penalty.record."""
        of, sizes, weights = self._layout(shape, order)
        members = np.argsort(of, kind="stable").astype(np.int64)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return GroupL2Record(self.lam, members, starts, weights)

    def blocks(self, shape: tuple[int, ...], order: Order) -> Blocks:
        """A block for each group."""
        of, _, weights = self._layout(shape, order)
        return Blocks(of.astype(np.int64), self.lam * weights, np.zeros(of.size))

    def _layout(self, shape: tuple[int, ...], order: Order = "C") -> tuple[Array, Array, Array]:
        """The group of each flat coefficient, the size and the weight of each group."""
        of, count = flat_codes(self.groups, shape, order)
        sizes = np.bincount(of, minlength=count)
        if self.weights is None:
            return of, sizes, np.ones(count)
        return (
            of,
            sizes,
            np.sqrt(sizes) if self.weights == "sqrt" else np.array(self.weights, dtype=np.float64),
        )

    def _group_norms(self, w: Array) -> tuple[Array, Array]:
        of, sizes, weights = self._layout(w.shape)
        return np.sqrt(np.bincount(of, np.square(w.ravel().astype(np.float64)), sizes.size)), weights
