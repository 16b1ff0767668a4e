"""How curved the smooth part is, measured at the clients: what the default hyper-parameters rest on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unpooled.data.base import Data
from unpooled.kernels.arrays import Array, Float
from unpooled.kernels.linalg.lanczos import ritz_values
from unpooled.problem import Problem

LANCZOS_STEPS = 20


@dataclass(frozen=True)
class Curvature:
    """Smoothness and strong convexity of a problem on data, computed when they are first asked for.

    ``batch_size`` and ``cohort`` say how rows and clients are sampled, None for all of them.
    """

    problem: Problem
    data: Data
    batch_size: int | None
    cohort: int | None = None

    @cached_property
    def clients(self) -> tuple[Float, Float]:
        """L_k and max_i c_i‖x_i‖² of every client, with c_i the loss's curvature bound."""
        self._linear("gamma (or step)")
        return self.data.spectra(self.problem)

    @property
    def smoothness(self) -> float:
        """The largest expected smoothness of a client's minibatch gradient,

            𝓛_k = (n−b)/(b(n−1)) · max_i c_i‖x_i‖² + n(b−1)/(b(n−1)) · L_k,

        with c_i the loss's curvature bound and L_k by five power iterations.
        """
        L, longest = self.clients
        n, b = self.data.sizes, self._batches
        expected = ((n - b) * longest + n * (b - 1) * L) / (b * np.maximum(n - 1, 1))
        return float(np.max(np.where(n == 1, longest, expected)))

    @property
    def round_smoothness(self) -> float:
        """The expected smoothness of the mean of one gradient from each client of a round,

            (1−q)L + q max_k Kπ_k L_k + (K/S) max_k π_k (n−b)/(b(n−1)) max_i c_i‖x_i‖²,   q = (K−S)/(S(K−1)),

        with L the pooled curvature's largest eigenvalue, K clients, S of them sampled.
        """
        L, longest = self.clients
        n, b, K, pi = self.data.sizes, self._batches, self.data.n_clients, self.data.weights
        S = K if self.cohort is None else min(self.cohort, K)
        among = (K - S) / (S * max(K - 1, 1))
        rows = (n - b) / (b * np.maximum(n - 1, 1)) * longest
        within = float(np.max(K / S * pi * rows))
        return (1.0 - among) * self.largest + among * float(np.max(K * pi * L)) + within

    @property
    def is_sampled(self) -> bool:
        """Whether a round is of some clients only, or of some rows."""
        some_clients = self.cohort is not None and self.cohort < self.data.n_clients
        return some_clients or bool(np.any(self._batches < self.data.sizes))

    @property
    def _batches(self) -> Array:
        """How many rows of each client a step takes."""
        n = self.data.sizes
        return n if self.batch_size is None else np.minimum(self.batch_size, n)

    @cached_property
    def spectrum(self) -> tuple[Float, Float]:
        """The pooled curvature's Ritz values and their weights, by at most 20 Lanczos steps, a round each."""
        self._linear("mu")
        size = self.data.n_features + int(self.problem.intercept)
        return ritz_values(self.data.curve(self.problem), size, LANCZOS_STEPS)

    @property
    def largest(self) -> float:
        """The pooled curvature's largest eigenvalue."""
        return float(self.spectrum[0][-1])

    @property
    def strong_convexity(self) -> float:
        """The smallest Ritz value of the pooled curvature.

        A tenth of it where the loss's curvature is only bounded: too small a μ costs little, too large a
        one makes the steps shrink before the optimum is reached.
        """
        smallest = float(self.spectrum[0][0])
        return smallest if self.problem.loss.is_quadratic else 0.1 * smallest

    @property
    def rounds(self) -> int:
        """How many rounds of communication the measurements made so far would have taken."""
        known = vars(self)
        return ("clients" in known) + (len(self.spectrum[0]) if "spectrum" in known else 0)

    def _linear(self, parameter: str) -> None:
        if self.problem.linear is None:
            name = type(self.problem.loss).__name__
            raise ValueError(
                f"{parameter} has no default for the loss {name}, whose curvature is unknown: "
                f"give {parameter}, or derive the loss from unpooled.LinearLoss"
            )
