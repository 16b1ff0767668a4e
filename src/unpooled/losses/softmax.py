"""Multinomial logistic regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from unpooled.kernels import plain_products as blocks
from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel, vectorised
from unpooled.losses.base import FAR, LinearLoss, entropy, mixed

exponentials = vectorised(blocks.exponentials)


class SoftmaxRecord(NamedTuple):
    """ℓ(z, y) = scale·(log Σ_c e^{z_c} − z_y); scale = 1."""

    scale: float = 1.0

    @kernel
    def value(self, z: Array, y: float) -> Any:
        """ℓ(z, y), with the largest margin taken out so that nothing overflows."""
        top = z[0]
        for c in range(1, z.size):
            top = max(top, z[c])
        total = 0.0
        for c in range(z.size):
            total += np.exp(z[c] - top)
        return self.scale * (np.log(total) + top - z[int(y)])

    @kernel
    def residuals(self, Z: Array, y: Array, weight: Array) -> None:
        """Z[i] ← weight_i dℓ/dz = weight_i (softmax(Z[i]) − e_y), the exponentials of all rows in one go."""
        for i in range(y.size):
            subtract_largest(Z, i)
        exponentials(Z)
        for i in range(y.size):
            normalise(Z, i, self.scale * weight[i])
            Z[i, int(y[i])] -= self.scale * weight[i]


@kernel
def subtract_largest(Z: Array, i: int) -> None:
    """Z_i ← Z_i − max Z_i, so that no exponential overflows.

    Four maxima run side by side: one alone would wait for itself.
    """
    n = Z.shape[1]
    a = b = c = d = Z[i, 0]
    fours = n - n % 4
    for q in range(0, fours, 4):
        a, b, c, d = max(a, Z[i, q]), max(b, Z[i, q + 1]), max(c, Z[i, q + 2]), max(d, Z[i, q + 3])
    for q in range(fours, n):
        a = max(a, Z[i, q])
    top = max(max(a, b), max(c, d))
    for q in range(n):
        Z[i, q] -= top


@kernel
def normalise(Z: Array, i: int, total: float) -> None:
    """Z_i ← Z_i scaled to this total."""
    before = Z.dtype.type(0)
    for q in range(Z.shape[1]):
        before += Z[i, q]
    scale = total / before
    for q in range(Z.shape[1]):
        Z[i, q] *= scale


STEPS = 200  # of Newton's method for the intercepts


@dataclass(frozen=True)
class Softmax(LinearLoss):
    """ℓ = log Σ_c e^{x·w_c} − x·w_y for labels y in 0 … C−1; w has shape (p, C).

    ``n_classes`` is taken from the data when it is not given; give it where a site may lack a class.
    """

    is_smooth: ClassVar[bool] = True
    is_shift_invariant: ClassVar[bool] = True

    n_classes: int | None = None

    def __post_init__(self) -> None:
        if self.n_classes is not None and self.n_classes < 2:
            raise ValueError(f"n_classes must be at least 2, got {self.n_classes!r}")

    def record(self) -> SoftmaxRecord:
        """The compiled side."""
        return SoftmaxRecord()

    def curvature(self, y: Array) -> Array:
        """The Hessian diag(p) − ppᵀ has eigenvalues ≤ 1/2."""
        return np.full(len(y), 0.5)

    def outputs(self, y: Array) -> int:
        """One margin a class."""
        return self.n_classes if self.n_classes is not None else max(2, int(np.max(y)) + 1)

    def check_targets(self, y: Array) -> str | None:
        """Labels are whole numbers 0 … C−1."""
        if np.any(y != np.floor(y)) or y.min() < 0:
            wrong = y[(y != np.floor(y)) | (y < 0)][0]
            return f"Softmax needs labels 0, 1, …, C-1, got {wrong:g}"
        if self.n_classes is not None and y.max() >= self.n_classes:
            return f"Softmax(n_classes={self.n_classes}) needs labels below {self.n_classes}, got {y.max():g}"
        return None

    def values(self, Z: Array, y: Array) -> Array:
        """log Σ_c e^{z_c} − z_y."""
        top = Z.max(axis=1)
        own = Z[np.arange(len(y)), y.astype(np.intp)]
        return np.asarray(np.log(np.exp(Z - top[:, None]).sum(axis=1)) + top - own)

    def residuals(self, Z: Array, y: Array) -> Array:
        """P − e_y."""
        U = self.mean(Z)
        U[np.arange(len(y)), y.astype(np.intp)] -= 1.0
        return U

    def second_derivative(self, Z: Array, y: Array) -> Array:
        """P, of the Hessian diag(P_i) − P_i P_iᵀ."""
        return self.mean(Z)

    def conjugate(self, U: Array, y: Array) -> Array:
        """Σ_c q_c log q_c, q = u + e_y; rows of U sum to zero."""
        return np.asarray(entropy(U + self.targets(y, U.shape[1])).sum(axis=1))

    def deviance(self, loss: Any, n_rows: int) -> Any:
        """Twice the loss of all rows."""
        return 2.0 * n_rows * loss

    def targets(self, y: Array, n_outputs: int = 1) -> Array:
        """e_y."""
        return np.asarray(y[:, None] == np.arange(n_outputs), dtype=np.float64)

    def mean(self, Z: Array) -> Array:
        """P, the probabilities of the classes."""
        P = np.exp(Z - Z.max(axis=1, keepdims=True))
        return np.asarray(P / P.sum(axis=1, keepdims=True))

    def link(self, t: Array) -> Array:
        """log t, class by class."""
        if not (t > 0.0).all():
            missing = ", ".join(str(c) for c in np.flatnonzero(t <= 0.0))
            raise ValueError(f"no client has a row of class {missing}: its intercept has no finite optimum")
        return np.log(t)

    def constant_loss(self, z: Array, t: Array, yy: float) -> float:
        """log Σ_c e^{z_c} − t·z."""
        return float(np.log(np.exp(z - z.max()).sum()) + z.max() - t @ z)

    def balance(
        self, conjugate: float, G: Array, mean: Array, x: Array, t: Array, xt: Array
    ) -> tuple[float, Array, float]:
        """A mixture with a constant prediction."""
        return mixed(conjugate, G, mean + t, t, x, xt, slice(None))

    def mean_rows(self, mean: Array) -> tuple[Array, Array]:
        """A row of each class."""
        return np.arange(len(mean), dtype=np.float64), mean

    def intercept(self, Z: Array, y: Array, share: Array) -> Array:
        """Damped Newton over the classes that there are; their sum is zero."""
        C = Z.shape[1]
        t = share @ self.targets(y, C)
        present = np.flatnonzero(t > 0.0)
        a = np.full(C, -FAR - 2.0 * float(np.abs(Z).max()))
        a[present] = 0.0
        value = float(share @ self.values(Z + a, y))
        for _ in range(STEPS):
            P = self.second_derivative(Z + a, y)[:, present]
            g = share @ P - t[present]
            H = np.diag(share @ P) - P.T @ (share[:, None] * P)
            d = -np.linalg.lstsq(H, g, rcond=1e-12)[0]
            size, done = 1.0, False
            while True:
                new = a.copy()
                new[present] += size * d
                lower = float(share @ self.values(Z + new, y))
                if lower <= value + 1e-4 * size * float(g @ d) + 1e-15 * (1.0 + abs(value)):
                    break
                size *= 0.5
                if size < 1e-8:
                    done = True
                    break
            if done:
                break
            a, value = new, lower
            if float(np.abs(d).max()) <= 1e-15 * (1.0 + float(np.abs(a[present]).max())):
                break
            if float(np.abs(g).max()) <= 1e-16:
                break
        a[present] -= a[present].mean()
        return a
