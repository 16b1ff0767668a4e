"""An approximate inverse of a Gram matrix by the nodewise lasso (Meinshausen and Bühlmann 2006;
van de Geer, Bühlmann, Ritov and Dezeure 2014).

On columns scaled to G_jj = 1, column j is regressed on the others, and row j of Θ follows:

    γ_j = argmin ½‖x_j − X_₋ⱼγ‖²/N + λ‖γ‖₁,    τ_j² = x_jᵀ(x_j − X_₋ⱼγ_j)/N,    θ_j = (e_j − γ_j)/τ_j².

By its optimality condition |Gθ_j − e_j| ≤ λ/τ_j² in every coordinate. λ = 0 gives the inverse.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import linalg

from unpooled.inference.coordinate_descent import PASSES, TOLERANCE, descend
from unpooled.kernels.arrays import Array, Float
from unpooled.kernels.compile import kernel

FACTOR = 0.1  # of √(2 log p/N), measured in docs/inference.md; 0.25 undercovers if features are correlated

SINGULAR = 1e-13  # share of a column's variance that is rounding error given the other columns


@kernel
def regressions(R: Array, lam: float, columns: Array, tolerance: float, passes: int, out: Array) -> int:
    """Write rows θ_j of the columns to ``out`` (m, p); returns how many failed. R has a unit diagonal."""
    p, failed = R.shape[0], 0
    weight, ridge = np.full(p, lam), np.zeros(p)
    for m in range(columns.size):
        j = columns[m]
        v, q = out[m], np.empty(p)
        for i in range(p):
            v[i], q[i] = 0.0, -R[j, i]
        if not descend(R, q, v, weight, ridge, j, tolerance, passes):
            failed += 1
        square = -q[j]
        for i in range(p):
            v[i] = -v[i] / square
        v[j] = 1.0 / square
    return failed


def default_lam(n_features: int, n_rows: int) -> float:
    """λ = 0.1 · √(2 log p/N), on standardised columns."""
    return FACTOR * math.sqrt(2.0 * math.log(max(n_features, 2)) / n_rows)


def nodewise(G: Float, columns: Array, lam: float) -> tuple[Float, int]:
    """θ_j of the columns, shape (m, p), in the units of G, and how many regressions did not converge."""
    scale = np.sqrt(np.diag(G))
    R = np.ascontiguousarray(G / np.multiply.outer(scale, scale))
    if lam > 0.0:
        theta = np.empty((len(columns), len(G)))
        failed = int(regressions(R, float(lam), columns, TOLERANCE, PASSES, theta))
    else:
        theta, failed = _inverse(R, columns), 0
    return theta / np.multiply.outer(scale[columns], scale), failed


def has_inverse(G: Float) -> bool:
    """Whether λ = 0 can be asked for."""
    scale = np.sqrt(np.diag(G))
    return _factor(G / np.multiply.outer(scale, scale)) is not None


def _factor(R: Float) -> Any:
    """Cholesky's, with its orientation; None where rounding is all that others leave of a column."""
    try:
        factor = linalg.cho_factor(R)
    except linalg.LinAlgError:
        return None
    # a pivot's square is what the columns before leave of this one's variance
    return None if np.square(np.diag(factor[0])).min() < SINGULAR else factor


def _inverse(R: Float, columns: Array) -> Float:
    factor = _factor(R)
    if factor is None:
        raise ValueError(
            "lam_node=0 asks for the inverse of the Gram matrix, which is singular: give lam_node > 0"
        )
    return np.asarray(linalg.cho_solve(factor, np.eye(len(R))[:, columns])).T
