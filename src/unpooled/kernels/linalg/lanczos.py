"""Extreme eigenvalues of a positive semi-definite operator known only through its products."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unpooled.kernels.arrays import Array, Float

Operator = Callable[[Float], Array]


def fixed_direction(size: int) -> Float:
    """A fixed unit vector with a component in every direction, so that results do not depend on a seed."""
    u = np.random.default_rng(20220717).standard_normal(size)
    return u / np.linalg.norm(u)


def largest_eigenvalue(operator: Operator, u: Float, iterations: int) -> float:
    """The top eigenvalue by power iteration from u: a lower bound, within percents after a few iterations."""
    value = 0.0
    for _ in range(iterations):
        v = operator(u)
        previous, value = value, float(np.linalg.norm(v))
        if value == 0.0 or abs(value - previous) <= 1e-12 * value:
            break
        u = v / value
    return value


def ritz_values(operator: Operator, size: int, steps: int) -> tuple[Float, Float]:
    """The Ritz values θ after ``steps`` Lanczos steps with full reorthogonalisation, and their weights ρ.

    Σ_i ρ_i f(θ_i) approximates uᵀf(H)u for the fixed direction u: a summary of the operator's spectrum.
    """
    steps = min(steps, size)
    basis = np.zeros((steps, size))
    diagonal, off = np.zeros(steps), np.zeros(steps)
    u = fixed_direction(size)
    for j in range(steps):
        basis[j] = u
        v = operator(u)
        diagonal[j] = u @ v
        for _ in range(2):
            v = v - basis[: j + 1].T @ (basis[: j + 1] @ v)
        off[j] = np.linalg.norm(v)
        if off[j] <= 1e-12 * max(1.0, abs(diagonal[: j + 1]).max()):
            steps = j + 1
            break
        u = v / off[j]
    T = np.diag(diagonal[:steps]) + np.diag(off[: steps - 1], 1) + np.diag(off[: steps - 1], -1)
    values, vectors = np.linalg.eigh(T)
    return np.maximum(values, 0.0), np.square(vectors[0])
