"""The prox of the nuclear norm inside a nuclear-norm ball, with a certificate.

    min F(X)  subject to  ‖X − W₀‖_* ≤ ε,      F(X) = ½‖X − V‖² + λ‖X‖_*

The dual in Y, the multiplier of X = Z with Z in the ε-ball, is maximised by proximal gradient steps of
length 1, Anderson-accelerated and taken back when ‖X − Z‖ grows:

    X = argmin F + ⟨Y, ·⟩ = SVT(V − Y, λ),   Z = W₀ + P_ε(Y + X − W₀),   Y ← Y + X − Z,

P_ε the projection on the nuclear ball. For any Y and any feasible Z, with X = SVT(V − Y, λ),

    gap = ½‖Z − X‖² + (λ‖Z‖_* − ⟨V − Y − X, Z⟩) + (ε‖Y‖_op − ⟨Y, Z − W₀⟩)  ≥  ½‖Z − W*‖²:

the duality gap F(Z) − [F(X) + ⟨Y, X − W₀⟩ − ε‖Y‖_op], as a sum of non-negative terms, so that it does not
drown in rounding.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from unpooled.arrays import Array
from unpooled.kernel import kernel
from unpooled.penalties.anderson import extrapolated
from unpooled.penalties.multipliers import norm2

MEMORY = 8
MAX_STEPS = 2000
RESIDUAL = 1e-12  # ‖X − Z‖ at which to stop, relative to the size of the data


@kernel
def thin_svd(A: Array) -> tuple[Array, Array, Array]:
    """A = U diag(σ) Vᵀ, in one place because LAPACK's wrapper is slow to compile."""
    return np.linalg.svd(A, full_matrices=False)


@kernel
def composed(left: Array, sigma: Array, right: Array) -> Any:
    """U diag(σ) Vᵀ."""
    scaled = np.empty((sigma.size, right.shape[1]))
    for i in range(sigma.size):
        for j in range(right.shape[1]):
            scaled[i, j] = sigma[i] * right[i, j]
    return np.dot(left, scaled)


@kernel
def svt(A: Array, lam: float) -> Any:
    """U diag((σ − λ)₊) Vᵀ, the prox of λ‖·‖_*."""
    left, sigma, right = thin_svd(A)
    for i in range(sigma.size):
        sigma[i] = max(sigma[i] - lam, 0.0)
    return composed(left, sigma, right)


@kernel
def nuclear_norm(A: Array) -> float:
    """Σ_i σ_i(A)."""
    total = 0.0
    for sigma in thin_svd(A)[1]:
        total += sigma
    return total


@kernel
def projected(A: Array, radius: float) -> tuple[Array, float]:
    """P_ε(A), and the operator norm κ of what it takes off: Σ_i (σ_i − κ)₊ = ε."""
    left, sigma, right = thin_svd(A)
    total, kappa = 0.0, 0.0
    for i in range(sigma.size):  # in descending order
        total += sigma[i]
        if (total - radius) / (i + 1) < sigma[i]:
            kappa = max((total - radius) / (i + 1), 0.0)
    for i in range(sigma.size):
        sigma[i] = max(sigma[i] - kappa, 0.0)
    return composed(left, sigma, right), kappa


@kernel
def first_multiplier(V: Array, lam: float, W0: Array, radius: float) -> Any:
    """The Y that would be exact if ‖·‖_* were linear around W₀: close, where the radius is small."""
    left, sigma, right = thin_svd(W0)
    for i in range(sigma.size):
        sigma[i] = lam if sigma[i] > 1e-10 * sigma[0] else 0.0
    D = V - W0 - composed(left, sigma, right)
    return D - projected(D, radius)[0]


@kernel
def in_radius(
    V: Array, lam: float, W0: Array, radius: float, Y: Array, size: float
) -> tuple[Array, Array, float, int]:
    """(Z, Y, ‖Y‖_op, number of SVDs), from a first Y; ``size`` is what the residual is compared with."""
    steps, changes = np.empty((MEMORY, V.size)), np.empty((MEMORY, V.size))
    point, residual = np.empty(V.size), np.empty(V.size)
    follows, kept, least = False, 0, math.inf
    best, target, bound = W0, Y, 0.0
    for step in range(MAX_STEPS):
        X = svt(V - Y, lam)
        P, kappa = projected(Y + X - W0, radius)
        R = X - W0 - P
        norm = norm2(R.reshape(-1))
        if norm > 2.0 * least:  # an acceleration went wrong: a plain step never increases it
            if not follows:
                break  # it did, so this is rounding
            Y, follows, kept = target, False, 0
            continue
        if norm < least:
            best, bound, least = W0 + P, kappa, norm
            target = Y + R
        if norm <= RESIDUAL * size:
            return best, target, bound, 2 * (step + 1)
        Y, kept = extrapolated(Y, R, point, residual, steps, changes, kept, follows)
        follows = True
    return best, target, bound, 2 * MAX_STEPS


@kernel
def certified_gap(V: Array, lam: float, W0: Array, radius: float, Y: Array, kappa: float, Z: Array) -> Any:
    """The gap of the module's docstring, at κ = ‖Y‖_op."""
    X = svt(V - Y, lam)
    square, inner, pull = 0.0, 0.0, 0.0
    for i in range(V.shape[0]):
        for j in range(V.shape[1]):
            square += (Z[i, j] - X[i, j]) ** 2
            inner += (V[i, j] - Y[i, j] - X[i, j]) * Z[i, j]
            pull += Y[i, j] * (Z[i, j] - W0[i, j])
    penalty = max(lam * nuclear_norm(Z) - inner, 0.0)
    return 0.5 * square + penalty + max(radius * kappa - pull, 0.0)
