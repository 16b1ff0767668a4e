"""Multinomial logistic regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from unpooled.kernels import plain_products as blocks
from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel, vectorised
from unpooled.losses.base import LinearLoss

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


@dataclass(frozen=True)
class Softmax(LinearLoss):
    """ℓ = log Σ_c e^{x·w_c} − x·w_y for labels y in 0 … C−1; w has shape (p, C).

    ``n_classes`` is taken from the data when it is not given; give it where a site may lack a class.
    """

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
