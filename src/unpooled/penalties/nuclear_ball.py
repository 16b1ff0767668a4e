"""The prox of the nuclear norm inside a nuclear-norm ball, with a certificate.

    min F(X)  subject to  ‖X − W₀‖_* ≤ ε,      F(X) = ½‖X − V‖² + λ‖X‖_*

The dual in Y, the multiplier of X = Z with Z in the ε-ball, is maximised by proximal gradient steps of
length 1, Anderson-accelerated and taken back when ‖X − Z‖ grows:

    X = argmin F + ⟨Y, ·⟩ = SVT(V − Y, λ),   Z = W₀ + P_ε(Y + X − W₀),   Y ← Y + X − Z,

P_ε the projection on the nuclear ball. For any Y and any feasible Z, with X = SVT(V − Y, λ),

    gap = ½‖Z − X‖² + (λ‖Z‖_* − ⟨V − Y − X, Z⟩) + (ε‖Y‖_op − ⟨Y, Z − W₀⟩)  ≥  ½‖Z − W*‖²:

the duality gap F(Z) − [F(X) + ⟨Y, X − W₀⟩ − ε‖Y‖_op], as a sum of non-negative terms, so that it does not
drown in rounding. All matrices lie flat.
"""

from __future__ import annotations

import math

import numpy as np

from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel
from unpooled.kernels.linalg.extrapolation import extrapolate
from unpooled.kernels.linalg.singular_values import nuclear_norm, shrunk

MEMORY = 8
MAX_STEPS = 2000
RESIDUAL = 1e-12  # ‖X − Z‖ at which to stop, relative to the size of the data


@kernel
def first_multiplier(
    V: Array, lam: float, W0: Array, radius: float, rows: int, columns: int, size: float, Y: Array
) -> None:
    """The Y that would be exact if ‖·‖_* were linear around W₀; close where the radius is small.

    The gradient of ‖·‖_* there is taken from its Moreau envelope.
    """
    width = 1e-6 * size
    D = np.empty(V.size)
    shrunk(W0, rows, columns, width, math.inf, D)
    for j in range(V.size):
        D[j] = V[j] - W0[j] - lam * (W0[j] - D[j]) / width
    shrunk(D, rows, columns, 0.0, radius, Y)
    for j in range(V.size):
        Y[j] = D[j] - Y[j]


@kernel
def in_radius(
    V: Array, lam: float, W0: Array, radius: float, rows: int, columns: int, size: float, Y: Array, Z: Array
) -> tuple[float, int]:
    """Write Z, replace a first Y by the multiplier; return ‖Y‖_op and the number of SVDs.

    ``size`` is what the residual is compared with.
    """
    n = V.size
    A, X, y = np.empty(n), np.empty(n), Y.copy()
    steps, changes, last = np.empty((MEMORY, n)), np.empty((MEMORY, n)), np.empty((2, n))
    made, least, bound, step = 0, math.inf, 0.0, 0
    while step < MAX_STEPS:
        step += 1
        for j in range(n):
            A[j] = V[j] - y[j]
        shrunk(A, rows, columns, lam, math.inf, X)
        for j in range(n):
            A[j] = y[j] + X[j] - W0[j]
            X[j] -= W0[j]
        square = 0.0
        P = np.empty(n)
        kappa = shrunk(A, rows, columns, 0.0, radius, P)
        for j in range(n):
            X[j] -= P[j]  # now the residual X − Z
            square += X[j] * X[j]
        norm = math.sqrt(square)
        if made > 0 and norm > 2.0 * least:  # the acceleration failed; a plain step never increases the norm
            for j in range(n):
                y[j] = last[0, j] + last[1, j]
            made = 0
            continue
        if norm < least:
            least, bound = norm, kappa
            for j in range(n):
                Z[j] = W0[j] + P[j]
                Y[j] = y[j] + X[j]
        if norm <= RESIDUAL * size:
            break
        extrapolate(y, X, last, steps, changes, made)
        made += 1
    return bound, 2 * step


@kernel
def certified_gap(
    V: Array, lam: float, W0: Array, radius: float, rows: int, columns: int, Y: Array, kappa: float, Z: Array
) -> float:
    """The gap of the module's docstring, at κ = ‖Y‖_op."""
    A, X = np.empty(V.size), np.empty(V.size)
    norm = nuclear_norm(Z, rows, columns)
    for j in range(V.size):
        A[j] = V[j] - Y[j]
    shrunk(A, rows, columns, lam, math.inf, X)
    square, inner, pull = 0.0, 0.0, 0.0
    for j in range(V.size):
        square += (Z[j] - X[j]) ** 2
        inner += (A[j] - X[j]) * Z[j]
        pull += Y[j] * (Z[j] - W0[j])
    return float(0.5 * square + max(lam * norm - inner, 0.0) + max(radius * kappa - pull, 0.0))
