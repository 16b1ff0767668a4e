"""Losses in NumPy, for all rows of a client at once: what exact solvers ask of a loss, without compiling.

For margins Z of shape (n, C) and targets y of shape (n,):

    values(Z, y)       ℓ(z_i, y_i), shape (n,)
    residuals(Z, y)    U = dℓ/dz, shape (n, C)
    curvature(Z, y)    the numbers d²ℓ/dz² is made of: ℓ''(z_i), shape (n, 1); for Softmax the
                       probabilities P, shape (n, C), whose Hessian is diag(P_i) − P_i P_iᵀ
    targets(y, C)      T, shape (n, C): U = μ(Z) − T for the losses with a canonical link
    floor(y)           min_z ℓ(z, y_i), shape (n,)
    conjugates(U, y)   ℓ*(u_i, y_i) = sup_z ⟨u_i, z⟩ − ℓ(z, y_i), shape (n,); inf outside its domain

A user's own ``LinearLoss`` has values and residuals only, by its kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unpooled.kernels.arrays import Array
from unpooled.losses.base import LinearLoss, weighted_total
from unpooled.losses.base import residuals as kernel_residuals
from unpooled.losses.huber import Huber
from unpooled.losses.logistic import Logistic
from unpooled.losses.poisson import Poisson
from unpooled.losses.softmax import Softmax
from unpooled.losses.squared import Squared

DOMAIN = 1e-14  # beyond the domain of a conjugate, what counts as rounding
FLAT = 0.01  # the part of its majorising curvature that an outlier of Huber's loss keeps


class Rowwise:
    """A user's own loss of linear margins; the base of the others."""

    is_curved = False  # whether ``curvature`` is known
    is_canonical = False  # whether U = μ(Z) − T, so that moments of the data give the null model
    is_smooth = False  # whether ``curvature`` is the true second derivative everywhere

    def __init__(self, loss: Any):
        self.loss = loss

    def total(self, Z: Array, y: Array, share: Array) -> float:
        """Σ_i share_i ℓ(z_i, y_i)."""
        return float(weighted_total(self.loss.record(), Z, y, share))

    def residuals(self, Z: Array, y: Array) -> Array:
        """dℓ/dz."""
        U = np.array(Z)
        kernel_residuals(self.loss.record(), U, y, np.ones(len(y)))
        return U

    def curvature(self, Z: Array, y: Array) -> Array:
        """Unknown."""
        raise TypeError(f"the second derivative of {type(self.loss).__name__} is not known")

    def targets(self, y: Array, n_outputs: int = 1) -> Array:
        """T = y."""
        return y[:, None]

    def floor(self, y: Array) -> Array:
        """Taken as 0."""
        return np.zeros(len(y))

    def conjugates(self, U: Array, y: Array) -> Array:
        """Unknown."""
        raise TypeError(f"the conjugate of {type(self.loss).__name__} is not known")


class _Known(Rowwise):
    is_curved = True

    def total(self, Z: Array, y: Array, share: Array) -> float:
        return float(share @ self.values(Z, y))

    def values(self, Z: Array, y: Array) -> Array:
        raise NotImplementedError


class SquaredRows(_Known):
    """½(z − y)²."""

    is_canonical = is_smooth = True

    def values(self, Z: Array, y: Array) -> Array:
        """ℓ."""
        return np.asarray(0.5 * np.square(Z[:, 0] - y))

    def residuals(self, Z: Array, y: Array) -> Array:
        """z − y."""
        return Z - y[:, None]

    def curvature(self, Z: Array, y: Array) -> Array:
        """1."""
        return np.ones_like(Z)

    def conjugates(self, U: Array, y: Array) -> Array:
        """½u² + uy."""
        return np.asarray(U[:, 0] * (0.5 * U[:, 0] + y))


class HuberRows(_Known):
    """c(r − c/2), r = z − y, c = r clipped to [−δ, δ]."""

    def values(self, Z: Array, y: Array) -> Array:
        """ℓ."""
        r = Z[:, 0] - y
        c = np.clip(r, -self.loss.delta, self.loss.delta)
        return np.asarray(c * (r - 0.5 * c))

    def residuals(self, Z: Array, y: Array) -> Array:
        """r clipped."""
        return np.asarray(np.clip(Z - y[:, None], -self.loss.delta, self.loss.delta))

    def curvature(self, Z: Array, y: Array) -> Array:
        """1 where |r| ≤ δ. Beyond, where ℓ'' = 0, a part of the majorising δ/|r|: a model that is flat in
        the direction of an outlier would send the next point anywhere."""
        size = np.maximum(np.abs(Z - y[:, None]), self.loss.delta)
        return np.where(size > self.loss.delta, FLAT * self.loss.delta / size, 1.0)

    def conjugates(self, U: Array, y: Array) -> Array:
        """½u² + uy for |u| ≤ δ."""
        u = U[:, 0]
        inside = np.abs(u) <= self.loss.delta * (1.0 + DOMAIN)
        return np.where(inside, u * (0.5 * u + y), np.inf)


class LogisticRows(_Known):
    """log(1 + e^z) − tz, t = [y > 0]."""

    is_canonical = is_smooth = True

    def values(self, Z: Array, y: Array) -> Array:
        """ℓ."""
        return np.logaddexp(0.0, np.where(y > 0, -Z[:, 0], Z[:, 0]))

    def residuals(self, Z: Array, y: Array) -> Array:
        """σ(z) − t."""
        return 0.5 + 0.5 * np.tanh(0.5 * Z) - self.targets(y)

    def curvature(self, Z: Array, y: Array) -> Array:
        """σ(1 − σ)."""
        return 0.25 / np.square(np.cosh(np.clip(0.5 * Z, -300.0, 300.0)))

    def targets(self, y: Array, n_outputs: int = 1) -> Array:
        """[y > 0]."""
        return (y > 0).astype(np.float64)[:, None]

    def conjugates(self, U: Array, y: Array) -> Array:
        """q log q + (1 − q) log(1 − q), q = u + t."""
        q = (U + self.targets(y))[:, 0]
        return _entropy(q) + _entropy(1.0 - q)


class PoissonRows(_Known):
    """e^z − yz."""

    is_canonical = is_smooth = True

    def values(self, Z: Array, y: Array) -> Array:
        """ℓ."""
        return np.asarray(np.exp(Z[:, 0]) - y * Z[:, 0])

    def residuals(self, Z: Array, y: Array) -> Array:
        """e^z − y."""
        return np.asarray(np.exp(Z) - y[:, None])

    def curvature(self, Z: Array, y: Array) -> Array:
        """e^z."""
        return np.exp(Z)

    def floor(self, y: Array) -> Array:
        """y − y log y, at z = log y."""
        return np.asarray(y - y * np.log(np.where(y > 0, y, 1.0)))

    def conjugates(self, U: Array, y: Array) -> Array:
        """μ log μ − μ, μ = u + y."""
        mu = U[:, 0] + y
        return np.asarray(_entropy(mu) - np.maximum(mu, 0.0))


class SoftmaxRows(_Known):
    """log Σ_c e^{z_c} − z_y."""

    is_canonical = is_smooth = True

    def values(self, Z: Array, y: Array) -> Array:
        """ℓ."""
        top = Z.max(axis=1)
        own = Z[np.arange(len(y)), y.astype(np.intp)]
        return np.asarray(np.log(np.exp(Z - top[:, None]).sum(axis=1)) + top - own)

    def residuals(self, Z: Array, y: Array) -> Array:
        """P − e_y."""
        U = self.curvature(Z, y)
        U[np.arange(len(y)), y.astype(np.intp)] -= 1.0
        return U

    def curvature(self, Z: Array, y: Array) -> Array:
        """P."""
        P = np.exp(Z - Z.max(axis=1, keepdims=True))
        return np.asarray(P / P.sum(axis=1, keepdims=True))

    def targets(self, y: Array, n_outputs: int = 1) -> Array:
        """e_y."""
        return np.asarray(y[:, None] == np.arange(n_outputs), dtype=np.float64)

    def conjugates(self, U: Array, y: Array) -> Array:
        """Σ_c q_c log q_c, q = u + e_y; rows of U sum to zero."""
        return np.asarray(_entropy(U + self.targets(y, U.shape[1])).sum(axis=1))


def _entropy(q: Array) -> Array:
    """q log q; 0 at 0 and a rounding below it, inf further below."""
    values = q * np.log(np.where(q > 0.0, q, 1.0))
    return np.where(q > 0.0, values, np.where(q >= -DOMAIN, 0.0, np.inf))


_ROWWISE: dict[type, type[Rowwise]] = {
    Squared: SquaredRows,
    Huber: HuberRows,
    Logistic: LogisticRows,
    Poisson: PoissonRows,
    Softmax: SoftmaxRows,
}


def rowwise(loss: Any) -> Rowwise | None:
    """The loss in NumPy; None for a user's loss that is not one of linear margins."""
    if type(loss) in _ROWWISE:
        return _ROWWISE[type(loss)](loss)
    return Rowwise(loss) if isinstance(loss, LinearLoss) else None
