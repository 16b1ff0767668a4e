"""A problem whose coefficients are a matrix while its rows are flat: dense or CSR, of p1·p2 numbers each."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from unpooled.kernels.arrays import Array
from unpooled.kernels.layout import Layout
from unpooled.problem import Problem

if TYPE_CHECKING:
    from unpooled.data.base import Data
from unpooled.data.federated import FederatedData


@dataclass(frozen=True)
class MatrixProblem(Problem):
    """As ``Problem``, with coefficients of ``shape``; a row holds theirs row by row."""

    shape: tuple[int, int] = (1, 1)

    def layout(self, data: FederatedData) -> Layout:
        """The matrix row by row, then the intercept."""
        if math.prod(self.shape) != data.n_features:
            p1, p2 = self.shape
            raise ValueError(f"shape=({p1}, {p2}) needs {p1 * p2} columns, but X has {data.n_features}")
        return Layout(self.shape, "C", int(self.intercept))

    def smooth(self, w: Array, data: Data, intercept: Any = None) -> float:
        """The smooth part Σ_k π_k L_k(w)."""
        return super().smooth(np.ravel(w), data, intercept)

    def gradient(self, w: Array, data: FederatedData, intercept: Any = None) -> Any:
        """The gradient of the smooth part; with an intercept the pair (in w, in the intercept)."""
        found = super().gradient(np.ravel(w), data, intercept)
        if intercept is None:
            return np.reshape(found, self.shape)
        return np.reshape(found[0], self.shape), found[1]

    def with_lam(self, lam: float) -> MatrixProblem:
        """The same problem with another λ."""
        return dataclasses.replace(self, penalty=self.penalty.with_lam(lam))


def two_sizes(shape: Any) -> tuple[int, int]:
    """A parameter ``shape``, checked."""
    if len(shape) != 2 or any(int(size) != size or size < 1 for size in shape):
        raise ValueError(f"shape must be two whole numbers, got {shape!r}")
    return int(shape[0]), int(shape[1])
