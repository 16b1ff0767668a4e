"""How curved the smooth part is, measured at the clients: what the default hyper-parameters rest on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from unpooled.arrays import Array, Float
from unpooled.losses.base import LinearLoss
from unpooled.problem import Problem
from unpooled.products import times, transposed_times
from unpooled.rows import rows_of
from unpooled.spectrum import extreme_eigenvalues, fixed_direction, largest_eigenvalue

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
        L, longest = self._sparse_clients() if self.data.is_sparse else self._dense_clients()
        n = self.data.sizes
        b = n if self.batch_size is None else np.minimum(self.batch_size, n)
        expected = ((n - b) * longest + n * (b - 1) * L) / (b * np.maximum(n - 1, 1))
        return float(np.max(np.where(n == 1, longest, expected)))

    @property
    def _start(self) -> Float:
        return fixed_direction(self.data.n_features + int(self.problem.intercept))

    def _row_curvatures(self) -> Array:
        """c_i, times the row's sample weight."""
        c, s = self.problem.loss.curvature(self.data.y), self.data.sample_weight
        return np.asarray(c if s is None else c * s, dtype=np.float64)

    def _sparse_clients(self) -> tuple[Float, Float]:
        """L_k and max_i c_i‖x_i‖² of every client."""
        from unpooled.sparse_spectrum import client_spectra

        c = self._row_curvatures()
        return client_spectra(rows_of(self.data), self.data.offsets, c, self._start, POWER_ITERATIONS)

    def _dense_clients(self) -> tuple[Float, Float]:
        """The same on dense rows."""
        c, u, ones = self._row_curvatures(), self._start, float(self.problem.intercept)
        L, longest = np.empty(self.data.n_clients), np.empty(self.data.n_clients)
        for k, client in enumerate(self.data):
            X = client.X.reshape(client.n_rows, -1)
            d = c[self.data.offsets[k] : self.data.offsets[k + 1]]
            longest[k] = np.max(d * (np.einsum("ij,ij->i", X, X) + ones))
            L[k] = largest_eigenvalue(partial(_curve, X, d / client.n_rows), u, POWER_ITERATIONS)
        return L, longest

    @cached_property
    def strong_convexity(self) -> float:
        """The smallest Ritz value of the pooled curvature after 20 Lanczos steps (one round each).

        A tenth of it where the loss's curvature is only bounded: too small a μ costs little, too large a
        one makes the steps shrink before the optimum is reached.
        """
        self._linear("mu")
        X = self.data.X if self.data.is_sparse else self.data.X.reshape(self.data.n_rows, -1)
        d = self.data.row_weights * self.problem.loss.curvature(self.data.y)
        smallest = extreme_eigenvalues(partial(_curve, X, d), len(self._start), LANCZOS_STEPS)[0]
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


def _curve(X: Any, d: Array, u: Float) -> Float:
    """XᵀDXu; where u has one entry more than X has columns, X is meant with a column of ones behind them."""
    p = X.shape[1]
    z = d[:, None] * (times(X, u[:p, None]) + u[p:].sum())
    return np.append(transposed_times(X, z), np.full(len(u) - p, z.sum()))
