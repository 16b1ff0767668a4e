"""What a loss is, and how to write your own.

A loss is the smooth part of the problem: for one client with rows (x_i, y_i) and sample weights s_i of
mean one,

    L(w) = (1/n) Σ_i s_i ℓ(x_i, y_i; w).

There are two ways to write one.

**In plain NumPy.** Any object with two methods will do; it runs everywhere, uncompiled:

    class LogCosh:
        def value(self, w, X, y):      # the mean loss, a float
            return np.mean(np.log(np.cosh(X @ w - y)))

        def gradient(self, w, X, y):   # its gradient, of w's shape
            return X.T @ np.tanh(X @ w - y) / len(y)

Both may take a fourth argument ``sample_weight``; they must if the data has weights. With an intercept
they see X with a column of ones behind the others, and w with the intercept as its last entry.

**Compiled.** Losses of linear margins, ℓ(z, y) with z = (x·w_1 + b_1, …, x·w_C + b_C), need only ℓ and
its derivative for one row, as kernels of a record (a NamedTuple whose fields are the loss's numbers):

    class LogCoshRecord(NamedTuple):
        scale: float

        @kernel
        def value(self, z, y):         # ℓ(z, y)
            return self.scale * np.log(np.cosh(z[0] - y))

        @kernel
        def residual(self, z, y):      # z ← dℓ/dz
            z[0] = self.scale * np.tanh(z[0] - y)

    @dataclass(frozen=True)
    class LogCosh(LinearLoss):
        scale: float = 1.0

        def record(self):
            return LogCoshRecord(self.scale)

        def curvature(self, y):        # an upper bound of ℓ'' for each row
            return np.full(len(y), self.scale)

Everything else (values, gradients, smoothness bounds, dense and sparse rows, intercepts, the fused local
loops of every algorithm) follows from these.

**What more it can do.** A compiled loss may define any of the methods below, in NumPy, for margins Z (n, C)
and targets y (n,) of many rows at once. Nothing in the library asks which loss it has; it asks what the loss
``offers``, and each method buys something:

    second_derivative(Z, y)   ℓ''(z_i), (n, 1): prox-Newton, a few rounds instead of dozens. With C > 1
                              outputs the probabilities P (n, C) of a Hessian diag(P_i) − P_i P_iᵀ. Set
                              ``is_smooth`` where it is the true second derivative everywhere.
    conjugate(U, y)           ℓ*(u_i) = sup_z ⟨u_i, z⟩ − ℓ(z, y_i), (n,), inf outside its domain: a duality
                              gap instead of a KKT residual. It states that ℓ is convex in z.
    floor(y)                  min_z ℓ(z, y_i), (n,): the scale of a certificate; −conjugate(0, y) otherwise.
    deviance(loss, n_rows)    −2 log-likelihood up to a constant, from the mean loss: AIC, BIC and EBIC.
    ``has_known_noise``       the curvature is the variance of the score: debiased intervals and tests of
                              heterogeneity. With ``has_dispersion`` the variance of the noise is estimated.
    intercept(Z, y, share)    the best intercept in closed form: faster intercepts of sites (Newton's method
                              in a bracket otherwise).

A loss with a canonical link, ℓ = b(z) − t z + const, residual μ(z) − t, may define three more. Moments of
the data then give the model without coefficients, which saves the first round of a path:

    mean(Z)                   μ(Z) = b'(Z), (n, C)
    link(t)                   the margin z with μ(z) = t; raises ValueError where it is infinite
    constant_loss(z, t, yy)   the mean loss at a constant margin z, from the means of t and y²
    targets(y, n_outputs)     t (n, C); y itself otherwise
    balance(…)                a dual point whose residuals sum to zero, from one whose do not: a duality gap
                              with an intercept in every round, rather than in the last ones
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from unpooled._validation import is_sparse
from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel, method
from unpooled.kernels.products import times, transposed_times
from unpooled.kernels.rows import adjoint, margins

FAR = 1000.0  # beyond the largest margin: an intercept as good as infinite
DOMAIN = 1e-14  # beyond the domain of a conjugate: what counts as rounding

value = method("value")
residual = method("residual")


@kernel
def each_residual(loss: Any, Z: Array, y: Array, weight: Array) -> None:
    """Z[i] ← weight_i dℓ/dz(Z[i], y_i), row by row."""
    for i in range(y.size):
        residual(loss, Z[i], y[i])
        for c in range(Z.shape[1]):
            Z[i, c] *= weight[i]


residuals = method("residuals", default=each_residual)
"""Z[i] ← weight_i dℓ/dz(Z[i], y_i): a record's own ``residuals`` where it does better than row by row."""


@kernel
def linear_gradient(loss: Any, rows: Any, batch: Array, w: Array, Z: Array, G: Array) -> None:
    """G ← (1/b) Σ_{i in batch} s_i ∇_w ℓ(x_i·w, y_i); Z is scratch of shape (b, C)."""
    b = batch.size
    y, weight = np.empty(b, Z.dtype), np.empty(b, Z.dtype)
    for i in range(b):
        y[i] = rows.y[batch[i]]
        weight[i] = (rows.weight[batch[i]] if rows.weight.size > 0 else 1.0) / b
    # Both products go tile by tile: sums of a few rows × outputs (``margins``) or features × outputs
    # (``adjoint``) stay in registers, and what they are made of in the L1 cache while the rest streams by.
    # See ``vector_products`` for the tiles in vectors of the host, ``blocks`` for the same in plain loops.
    margins(rows, batch, w, Z)
    residuals(loss, Z, y, weight)
    adjoint(rows, batch, Z, G)


@kernel
def weighted_total(loss: Any, Z: Array, y: Array, weight: Array) -> float:
    """Σ_i weight_i ℓ(Z[i], y_i)."""
    total = 0.0
    for i in range(y.size):
        total += weight[i] * value(loss, Z[i], y[i])
    return total


@kernel
def each_value(loss: Any, Z: Array, y: Array, out: Array) -> None:
    """out[i] ← ℓ(Z[i], y_i)."""
    for i in range(y.size):
        out[i] = value(loss, Z[i], y[i])


gradient = method("gradient", default=linear_gradient)
"""The gradient that local loops call: a record's own ``gradient`` where it has one, else linear."""


class LinearLoss(ABC):
    """A loss ℓ(z, y) of linear margins z = Xw + b. Subclass it, or see the module for plain losses."""

    @abstractmethod
    def record(self) -> NamedTuple | Any:
        """The compiled side: a NamedTuple with kernels ``value(z, y)`` and ``residual(z, y)`` (or its own
        ``residuals`` of many rows).
        """

    @abstractmethod
    def curvature(self, y: Array) -> Array:
        """For each row, an upper bound of the largest eigenvalue of d²ℓ/dz²."""

    is_quadratic: ClassVar[bool] = False
    """Whether ``curvature`` is the curvature itself, not only a bound of it."""
    is_least_squares: ClassVar[bool] = False
    """Whether ℓ = ½(z − y)²: Gram matrices then say all there is to know, in one round."""
    is_smooth: ClassVar[bool] = False
    """Whether ``second_derivative`` is the true one everywhere."""
    is_shift_invariant: ClassVar[bool] = False
    """Whether a number added to all outputs changes nothing, as with Softmax."""
    has_known_noise: ClassVar[bool] = False
    """Whether the curvature is the variance of the score, up to the dispersion."""
    has_dispersion: ClassVar[bool] = False
    """Whether the variance of the noise is a parameter of its own, estimated from the residuals."""

    def offers(self, *names: str) -> bool:
        """Whether this loss defines these of the optional methods."""
        return all(getattr(type(self), name) is not getattr(LinearLoss, name) for name in names)

    def outputs(self, y: Array) -> int | None:
        """The number C of margins a row has; None when w is a vector (or one matrix) and z a number."""
        return None

    def check_targets(self, y: Array) -> str | None:
        """What is wrong with the targets, if anything."""
        return None

    def values(self, Z: Array, y: Array) -> Array:
        """ℓ(z_i, y_i), of shape (n,)."""
        out = np.empty(len(y))
        each_value(self.record(), np.array(Z, dtype=np.float64), y, out)
        return out

    def residuals(self, Z: Array, y: Array) -> Array:
        """dℓ/dz, of shape (n, C)."""
        U = np.array(Z, dtype=np.float64)
        residuals(self.record(), U, y, np.ones(len(y)))
        return U

    def total(self, Z: Array, y: Array, share: Array) -> float:
        """Σ_i share_i ℓ(z_i, y_i)."""
        return float(share @ self.values(Z, y))

    def second_derivative(self, Z: Array, y: Array) -> Array:
        """ℓ''(z_i), of shape (n, 1); for C > 1 outputs the P of diag(P_i) − P_i P_iᵀ."""
        raise self._lacks("second derivative")

    def conjugate(self, U: Array, y: Array) -> Array:
        """ℓ*(u_i), of shape (n,)."""
        raise self._lacks("conjugate")

    def floor(self, y: Array) -> Array:
        """min_z ℓ(z, y_i) = −ℓ*(0), of shape (n,); taken as 0 where nothing is known."""
        if not self.offers("conjugate"):
            return np.zeros(len(y))
        return 0.0 - self.conjugate(np.zeros((len(y), self.outputs(y) or 1)), y)

    def deviance(self, loss: Any, n_rows: int) -> Any:
        """−2 log-likelihood of so many rows up to a constant, from their mean loss (or an array of them)."""
        raise self._lacks("likelihood")

    def targets(self, y: Array, n_outputs: int = 1) -> Array:
        """t, of shape (n, C)."""
        return y[:, None]

    def mean(self, Z: Array) -> Array:
        """μ(Z), of shape (n, C)."""
        raise self._lacks("mean function")

    def link(self, t: Array) -> Array:
        """The margin z (C,) with μ(z) = t."""
        raise self._lacks("link")

    def constant_loss(self, z: Array, t: Array, yy: float) -> float:
        """The mean loss at a constant margin z (C,), from the means of t and y²."""
        raise self._lacks("canonical link")

    def balance(
        self, conjugate: float, G: Array, mean: Array, x: Array, t: Array, xt: Array
    ) -> tuple[float, Array, float]:
        """A dual point u' with Σ_i s_i u'_i = 0 from a point u whose mean is ``mean``.

        ``conjugate`` is Σ s ℓ*(u) and ``G`` is Σ s x u; x, t and xt are the means of x, t and x·t. Returns
        (Σ s ℓ*(u'), Σ s x u', the largest α ≤ 1 with αu' in the domain of ℓ*).
        """
        raise self._lacks("way to balance residuals")

    def intercept(self, Z: Array, y: Array, share: Array) -> Array | None:
        """The a (C,) that minimises Σ_i share_i ℓ(z_i + a, y_i) in closed form; None where there is none.

        Where no finite one does, one beyond FAR and the largest margin.
        """
        return None

    def mean_rows(self, mean: Array) -> tuple[Array, Array]:
        """Targets and weights of rows whose mean target is ``mean``: what one average row looks like."""
        return mean, np.ones(1)

    def _lacks(self, what: str) -> TypeError:
        return TypeError(f"the {what} of {type(self).__name__} is not known")

    def value(
        self, w: Array, X: Any, y: Array, sample_weight: Array | None = None, intercept: Any = None
    ) -> float:
        """The weighted mean loss at w, of shape (p,), (p1, p2) for matrix rows, or (p, C)."""
        y = np.asarray(y, dtype=np.float64)
        weight = _normalised(sample_weight, len(y))
        return float(weighted_total(self.record(), linear_margins(X, w, intercept), y, weight))

    def gradient(
        self, w: Array, X: Any, y: Array, sample_weight: Array | None = None, intercept: Any = None
    ) -> Any:
        """The gradient of ``value``, of w's shape; with an intercept the pair (in w, in the intercept)."""
        y = np.asarray(y, dtype=np.float64)
        Z = linear_margins(X, w, intercept)
        residuals(self.record(), Z, y, _normalised(sample_weight, len(y)))
        in_w = pull_back(X, Z).reshape(np.shape(w))
        if intercept is None:
            return in_w
        in_b = Z.sum(axis=0)
        return in_w, (float(in_b[0]) if np.ndim(intercept) == 0 else in_b)

    def smoothness(
        self, X: Any, y: Array, sample_weight: Array | None = None, iterations: int = 100
    ) -> float:
        """The smoothness L of ``value``: the top eigenvalue of Xᵀ diag(s_i c_i) X / n, by power iteration."""
        from unpooled.kernels.linalg.lanczos import fixed_direction, largest_eigenvalue

        X = X if is_sparse(X) else np.asarray(X).reshape(len(y), -1)
        d = _normalised(sample_weight, len(y)) * self.curvature(np.asarray(y, dtype=np.float64))
        return largest_eigenvalue(lambda u: X.T @ (d * (X @ u)), fixed_direction(X.shape[1]), iterations)


def linear_margins(X: Any, w: Array, intercept: Any = None) -> Array:
    """Z = Xw + b as a float64 array of shape (n, C), C = 1 where w has one output."""
    w = np.asarray(w, dtype=np.float64)
    if not is_sparse(X):
        X = np.asarray(X)
        if X.ndim == 3:
            X, w = X.reshape(len(X), -1), w.reshape(-1)
    if X.shape[1] != w.shape[0]:
        raise ValueError(f"w has shape {w.shape}, but a row has {X.shape[1]} features")
    Z = times(X, w.reshape(X.shape[1], -1))
    return Z if intercept is None else Z + np.atleast_1d(np.asarray(intercept, dtype=np.float64))


def pull_back(X: Any, Z: Array) -> Array:
    """XᵀZ, of shape (p, C)."""
    return transposed_times(X if is_sparse(X) else np.asarray(X).reshape(len(Z), -1), Z)


def _normalised(sample_weight: Array | None, n: int) -> Array:
    """Weights that sum to one."""
    if sample_weight is None:
        return np.full(n, 1.0 / n)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight has shape {weight.shape}, expected ({n},)")
    return np.asarray(weight / weight.sum())


def entropy(q: Array) -> Array:
    """q log q; 0 at 0 and a rounding below it, inf further below."""
    values = q * np.log(np.where(q > 0.0, q, 1.0))
    return np.where(q > 0.0, values, np.where(q >= -DOMAIN, 0.0, np.inf))


def mixed(
    conjugate: float, G: Array, mu: Array, t: Array, x: Array, xt: Array, rows: slice
) -> tuple[float, Array, float]:
    """``balance`` for class probabilities: μ' = kept·μ + (1 − kept)·q, q the constant prediction missing."""
    kept = float(min(1.0, np.min(t / np.maximum(mu, 1e-300))))
    q = np.maximum(t - kept * mu, 0.0) / (1.0 - kept) if kept < 1.0 else t
    constant = np.multiply.outer(q[rows], x).ravel() - xt
    conjugate = kept * conjugate + (1.0 - kept) * float(np.sum(entropy(q)))
    return conjugate, kept * G + (1.0 - kept) * constant, 1.0
