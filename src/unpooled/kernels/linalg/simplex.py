"""The multiplier of a radius on a sum of positive parts."""

from __future__ import annotations

from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel


@kernel
def multiplier(sigma: Array, lam: float, radius: float) -> tuple[float, float]:
    """The κ ≥ 0 with Σ(σ − λ − κ)₊ ≤ radius, zero or tight, and Σσ."""
    norm, kappa = 0.0, 0.0
    for i in range(sigma.size):
        norm += sigma[i]
    if norm <= radius:
        return 0.0, norm
    for _ in range(sigma.size):  # κ grows until no σ falls below it
        total, active = 0.0, 0
        for i in range(sigma.size):
            if sigma[i] - lam > kappa:
                total += sigma[i] - lam
                active += 1
        if active == 0 or (total - radius) / active <= kappa:
            break
        kappa = (total - radius) / active
    return kappa, norm
