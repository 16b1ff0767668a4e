"""How curved the smooth part is, measured at the clients: what the default hyper-parameters rest on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from unpooled.arrays import Array, Float
from unpooled.losses.base import LinearLoss
from unpooled.plain import with_ones
from unpooled.problem import Problem
from unpooled.spectrum import extreme_eigenvalues, largest_eigenvalue
from unpooled.validation import is_sparse

if TYPE_CHECKING:
    from unpooled.data import FederatedData

POWER_ITERATIONS = 5
LANCZOS_STEPS = 20


@dataclass(frozen=True)
class Curvature:
    """Smoothness and strong convexity of a problem on data, computed when they are first asked for."""

    problem: Problem
    data: FederatedData
    batch_size: int | None

    @cached_property
    def smoothness(self) -> float:
        """The largest expected smoothness of a client's minibatch gradient,

            𝓛_k = (n−b)/(b(n−1)) · max_i c_i‖x_i‖² + n(b−1)/(b(n−1)) · L_k,

        with c_i the loss's curvature bound and L_k by five power iterations.
        """
        self._linear("gamma (or step)")
        return max(self._expected_smoothness(client) for client in self.data)

    def _expected_smoothness(self, client: Any) -> float:
        X = _matrix(client.X, self.problem.intercept)
        n = X.shape[0]
        b = n if self.batch_size is None else min(self.batch_size, n)
        c = self.problem.loss.curvature(client.y)
        c = c if client.sample_weight is None else c * client.sample_weight
        largest_row = float(np.max(c * _squared_norms(X)))
        L = largest_eigenvalue(lambda u: X.T @ (c * (X @ u)) / n, X.shape[1], POWER_ITERATIONS)
        if n == 1:
            return largest_row
        return float((n - b) / (b * (n - 1)) * largest_row + n * (b - 1) / (b * (n - 1)) * L)

    @cached_property
    def strong_convexity(self) -> float:
        """The smallest Ritz value of the pooled curvature after 20 Lanczos steps (one round each).

        A tenth of it where the loss's curvature is only bounded: too small a μ costs little, too large a
        one makes the steps shrink before the optimum is reached.
        """
        self._linear("mu")
        X = _matrix(self.data.X, self.problem.intercept)
        d = self.data.row_weights * self.problem.loss.curvature(self.data.y)

        def product(u: Float) -> Array:
            return np.asarray(X.T @ (d * (X @ u)))

        smallest = extreme_eigenvalues(product, X.shape[1], LANCZOS_STEPS)[0]
        return smallest if self.problem.loss.is_quadratic else 0.1 * smallest

    @property
    def rounds(self) -> int:
        """How many rounds of communication the measurements made so far would have taken."""
        known = vars(self)
        return ("smoothness" in known) + LANCZOS_STEPS * ("strong_convexity" in known)

    def _linear(self, parameter: str) -> None:
        if not isinstance(self.problem.loss, LinearLoss):
            name = type(self.problem.loss).__name__
            raise ValueError(
                f"{parameter} has no default for the loss {name}, whose curvature is unknown: "
                f"give {parameter}, or derive the loss from unpooled.LinearLoss"
            )


def _matrix(X: Any, intercept: bool) -> Any:
    """Rows as vectors, with the intercept's ones where there is one."""
    if intercept:
        return with_ones(X)
    return X if is_sparse(X) else np.asarray(X).reshape(X.shape[0], -1)


def _squared_norms(X: Any) -> Array:
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X))
