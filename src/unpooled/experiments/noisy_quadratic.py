"""Noisy quadratics with a known optimum, on which a rate of convergence can be measured.

    f_k(w) = ½ wᵀQw − ⟨Qb_k, w⟩,   Q diagonal,   gradients with noise of size σ

A row of the data is the linear part of one noisy gradient, x = σε − Qb_k, so that a minibatch of one row is
one noisy gradient. The b_k differ from client to client and average to b. Many independent replicates of
the problem stand side by side in one long w.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unpooled.data.federated import FederatedData
from unpooled.kernels.arrays import Array, Float
from unpooled.penalties import L1

DIMENSION, REPLICATES = 10, 64
SMALLEST, LARGEST = 1.0, 4.0  # μ and L, the ends of Q's diagonal
CURVATURES = np.tile(np.linspace(SMALLEST, LARGEST, DIMENSION), REPLICATES)
NOISE_ROWS = 1500  # noisy gradients of each client to draw from


@dataclass(frozen=True)
class NoisyQuadratic:
    """The loss, with rows from ``noisy_quadratic``."""

    def value(self, w: Array, X: Array, y: Array) -> float:
        """f_k(w), summed over the replicates."""
        return float(0.5 * np.dot(w, CURVATURES * w) + np.mean(X @ w))

    def gradient(self, w: Array, X: Array, y: Array) -> Any:
        """Qw − Qb_k + noise."""
        return CURVATURES * w + X.mean(axis=0)

    def optimum(self, data: FederatedData, penalty: L1) -> Float:
        """argmin Σ_k π_k f_k(w) + λ‖w‖₁ in closed form: b thresholded by λ/Q."""
        b = -(data.row_weights @ data.X) / CURVATURES
        return np.asarray(np.sign(b) * np.maximum(np.abs(b) - penalty.lam / CURVATURES, 0.0))


def noisy_quadratic(seed: int, n_clients: int, noise: float = 3.0, shift: float = 1.0) -> FederatedData:
    """K clients with shifts of size ``shift`` that average to zero; noise of mean zero in each."""
    rng = np.random.default_rng([seed, n_clients])
    b = np.tile(np.linspace(-1.5, 1.5, DIMENSION), REPLICATES)
    shifts = shift * rng.standard_normal((n_clients, b.size))
    shifts -= shifts.mean(axis=0)
    parts = []
    for k in range(n_clients):
        noisy = noise * rng.standard_normal((NOISE_ROWS, b.size))
        parts.append((noisy - noisy.mean(axis=0) - CURVATURES * (b + shifts[k]), np.zeros(NOISE_ROWS)))
    return FederatedData.from_clients(parts)
