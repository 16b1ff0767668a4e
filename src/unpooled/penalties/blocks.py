"""A penalty on flat vectors in NumPy, as servers use it: value, prox, and the conjugate for dual bounds.

ℓ1, elastic net and group norm are one formula: groups g of coordinates with weights λ_g, and ridges r_j,

    h(w) = Σ_g λ_g ‖w_g‖₂ + ½ Σ_j r_j w_j²,

where unpenalised coordinates (intercepts) are groups of weight zero. A penalty that is such a sum says so by
``Penalty.blocks``, and has prox-Newton, working sets and units of its own for it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unpooled._validation import blocks
from unpooled.kernels.arrays import Array, Float


class Shrinkage(ABC):
    """A penalty h on the flat vectors of a problem."""

    @property
    def has_dual(self) -> bool:
        """Whether ``limit`` and ``conjugate`` make a dual bound."""
        return True

    @abstractmethod
    def value(self, w: Float) -> float:
        """h(w)."""

    @abstractmethod
    def prox(self, v: Float, step: float) -> Float:
        """argmin ½‖w − v‖² + step·h(w)."""

    def limit(self, u: Float) -> float:
        """The largest factor α ≤ 1 with h*(αu) < ∞; intercepts are left to the caller."""
        raise NotImplementedError

    def conjugates(self, u: Float, alphas: Float) -> Float:
        """h*(αu) for each α up to ``limit``."""
        return np.zeros(len(alphas))


@dataclass(frozen=True, eq=False)
class Blocks(Shrinkage):
    """``of`` (size,): the group of each coordinate; ``weight`` (groups,); ``ridge`` (size,).

    The intercepts' groups come last, one by one.
    """

    of: Array
    weight: Float
    ridge: Float
    n_intercepts: int = 0

    @property
    def has_dual(self) -> bool:
        """Not where coefficients are free: their gradient is never exactly zero."""
        return not self.free.size and self.n_penalised > 0

    @cached_property
    def free(self) -> Array:
        """The coordinates before the intercepts that carry no penalty."""
        return np.flatnonzero((self.weight[self.of] + self.ridge)[: self.n_penalised] == 0.0)

    @cached_property
    def n_penalised(self) -> int:
        """The coordinates before the intercepts."""
        return int(np.sum(self.of < self.n_groups_penalised))

    @cached_property
    def n_groups_penalised(self) -> int:
        """The groups before those of the intercepts."""
        return len(self.weight) - self.n_intercepts

    def norms(self, v: Float) -> Float:
        """‖v_g‖₂."""
        return np.sqrt(np.bincount(self.of, np.square(v), len(self.weight)))

    def value(self, w: Float) -> float:
        """h(w)."""
        return float(self.weight @ self.norms(w) + 0.5 * self.ridge @ np.square(w))

    def prox(self, v: Float, step: float) -> Float:
        """(1 − step·λ_g/‖v_g‖)₊ v_j / (1 + step·r_j)."""
        norms = self.norms(v)
        kept = np.maximum(norms - step * self.weight, 0.0) / np.where(norms > 0.0, norms, 1.0)
        return np.asarray(kept[self.of] * v / (1.0 + step * self.ridge))

    def limit(self, u: Float) -> float:
        """Bound by the groups without a ridge."""
        n, groups = self.n_penalised, self.n_groups_penalised
        hard = np.ones(groups, dtype=bool)
        hard[self.of[:n][self.ridge[:n] > 0.0]] = False
        norms = self.norms(u)[:groups][hard]
        ratios = self.weight[:groups][hard] / np.where(norms > 0.0, norms, 1.0)
        return float(np.where(norms > 0.0, ratios, 1.0).min(initial=1.0))

    def conjugates(self, u: Float, alphas: Float) -> Float:
        """Σ_j (|αu_j| − λ_j)₊²/(2r_j): ridges come with groups of one coordinate."""
        soft, out = np.flatnonzero(self.ridge > 0.0), np.zeros(len(alphas))
        size, weight, ridge = np.abs(u[soft]), self.weight[self.of[soft]], self.ridge[soft]
        for part in blocks(len(alphas), max(len(soft), 1)):
            excess = np.maximum(np.multiply.outer(alphas[part], size) - weight, 0.0)
            out[part] = np.square(excess) @ (0.5 / ridge)
        return out

    def with_intercepts(self, count: int) -> Blocks:
        """The same with so many unpenalised coordinates behind the others."""
        of = np.concatenate([self.of, len(self.weight) + np.arange(count)])
        zeros = np.zeros(count)
        return Blocks(of, np.append(self.weight, zeros), np.append(self.ridge, zeros), count)

    def in_units(self, units: Float) -> Blocks:
        """h as a function of v = units·w; coordinates of a group have the same unit."""
        of_group = np.ones(len(self.weight))
        of_group[self.of] = units
        return Blocks(self.of, self.weight / of_group, self.ridge / np.square(units), self.n_intercepts)

    def within(self, working: Array) -> Blocks:
        """The same on some coordinates, which hold whole groups."""
        groups, of = np.unique(self.of[working], return_inverse=True)
        count = int(np.sum(groups >= self.n_groups_penalised))
        return Blocks(of, self.weight[groups], self.ridge[working], count)
