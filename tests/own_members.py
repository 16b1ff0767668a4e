"""A loss and a penalty as a user would write them, with everything that they can offer."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy import optimize

import unpooled as up
from unpooled.losses.base import entropy


class NegativeBinomialRecord(NamedTuple):
    r: float

    @up.kernel
    def value(self, z, y):
        t = z[0] - np.log(self.r)
        return (y + self.r) * (max(t, 0.0) + np.log1p(np.exp(-abs(t))) + np.log(self.r)) - y * z[0]

    @up.kernel
    def residual(self, z, y):
        z[0] = (y + self.r) * (0.5 + 0.5 * np.tanh(0.5 * (z[0] - np.log(self.r)))) - y


@dataclass(frozen=True)
class NegativeBinomial(up.LinearLoss):
    """ℓ = (y + r) log(r + e^z) − yz: counts of mean e^z and variance e^z + e^{2z}/r, r known."""

    r: float = 1.0
    is_smooth: ClassVar[bool] = True
    has_known_noise: ClassVar[bool] = True

    def record(self):
        return NegativeBinomialRecord(float(self.r))

    def curvature(self, y):
        return 0.25 * (np.asarray(y, dtype=np.float64) + self.r)

    def check_targets(self, y):
        return f"NegativeBinomial needs counts, got {y.min():g}" if y.min() < 0 else None

    def second_derivative(self, Z, y):
        return (y[:, None] + self.r) * 0.25 / np.square(np.cosh(0.5 * (Z - np.log(self.r))))

    def conjugate(self, U, y):
        s = (U[:, 0] + y) / (y + self.r)
        outside = (s < -1e-14) | (s > 1.0 + 1e-14)
        inside = entropy(s) + entropy(1.0 - s) - (1.0 - s) * np.log(self.r)
        return np.where(outside, np.inf, (y + self.r) * inside)

    def deviance(self, loss, n_rows):
        return 2.0 * n_rows * loss


class SparseGroupRecord(NamedTuple):
    lam: float
    ratio: float
    groups: np.ndarray
    weights: np.ndarray

    @up.kernel
    def prox(self, v, step, out):
        squares, t = np.zeros(self.weights.size), step * self.lam * self.ratio
        for j in range(v.size):
            out[j] = np.sign(v[j]) * max(abs(v[j]) - t, 0.0)
            squares[self.groups[j]] += out[j] * out[j]
        for j in range(v.size):
            norm, g = np.sqrt(squares[self.groups[j]]), self.groups[j]
            less = step * self.lam * (1.0 - self.ratio) * self.weights[g]
            out[j] *= max(norm - less, 0.0) / norm if norm > 0.0 else 0.0

    @up.kernel
    def subgradient(self, w, out):
        squares = np.zeros(self.weights.size)
        for j in range(w.size):
            squares[self.groups[j]] += w[j] * w[j]
        for j in range(w.size):
            norm, g = np.sqrt(squares[self.groups[j]]), self.groups[j]
            slope = (1.0 - self.ratio) * self.weights[g] * w[j] / norm if norm > 0.0 else 0.0
            out[j] = self.lam * (self.ratio * np.sign(w[j]) + slope)


@dataclass(frozen=True)
class SparseGroupLasso(up.Penalty):
    """λ (ρ‖w‖₁ + (1 − ρ) Σ_g √|g| ‖w_g‖₂); ``groups`` holds the group of every coefficient, from 0."""

    lam: float
    groups: tuple
    ratio: float = 0.5

    def _parts(self):
        groups = np.array(self.groups, dtype=np.int64)
        return groups, np.sqrt(np.bincount(groups))

    def norm(self, w):
        groups, weights = self._parts()
        w = np.asarray(w, dtype=np.float64)
        norms = np.sqrt(np.bincount(groups, np.square(w)))
        return float(self.ratio * np.abs(w).sum() + (1.0 - self.ratio) * weights @ norms)

    def dual_norm(self, u):
        groups, weights = self._parts()
        return max(self._of_group(np.abs(np.asarray(u)[groups == g]), w) for g, w in enumerate(weights))

    def _of_group(self, size, weight):
        def excess(t):
            left = np.maximum(size - t * self.ratio, 0.0)
            return np.linalg.norm(left) - t * (1.0 - self.ratio) * weight

        top = float(np.linalg.norm(size)) / (1.0 - self.ratio) + 1e-300
        return optimize.brentq(excess, 0.0, top, xtol=1e-15 * top) if size.any() else 0.0

    def record(self, shape, order="C"):
        return SparseGroupRecord(self.lam, self.ratio, *self._parts())
