"""A bound on the error of a singular-value threshold, from the inner products of the rotated rows.

Let Q be orthogonal and B = Q S, its rows b_i with norms σ_i, G = B Bᵀ. Were G diagonal, the b_i/σ_i and the
rows of Q would be singular vectors. Split the rows: σ_i > t above, the others below, and write the result as

    X = Q₁ᵀ(B₁ − t U₁),    u_i = b_i/σ_i,        C = U₁U₁ᵀ − I the cosines,   c = ‖C‖_F ≤ ¼.

With W the polar factor of B₁, the exact threshold of S̃ = Q₁ᵀB₁ + Q₂ᵀB₂(I − WᵀW) is Q₁ᵀ(B₁ − tW), if B₁ has no
singular value below t and B₂ none above. The threshold is non-expansive, so ‖X − X*‖_F is at most the sum of

    t(c + 4c²)                     ≥ t‖U₁ − W‖, from the Sylvester equation of (B₁B₁ᵀ)^½ − diag σ;
    ‖U₁B₂ᵀ‖_F/√(1 − c)             ≥ ‖S − S̃‖_F;
    √k₁(t − √(1 − c) min σ₁)₊      where B₁ has singular values below t;
    √k₂(τ − t)₊ or ‖B₂‖_F          where B₂ has some above, τ² = max_j Σ_l |G_jl| ≥ ‖B₂‖² (Gershgorin);
    2c² max σ                      for the multiplier of a radius, and for the sum of the singular values;
    rounding·‖S‖_F                 for Q, B and X in floating point.

Rows that are rounding errors count as below even if t is smaller; ‖B₂‖_F is then added once more.
"""

from __future__ import annotations

import math

from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel

ROUNDING = 2.0**-52


@kernel
def error_bound(G: Array, sigma: Array, t: float, floor: float, summed: bool) -> tuple[float, bool]:
    """A bound on ‖X − X*‖_F up to rounding, and whether the rows below t provably stay below.

    Rows up to ``floor`` are rounding errors. ``summed`` includes the error of the sum of singular values.
    The bound is infinite if the rows above t are far from orthogonal.
    """
    k, above, split = sigma.size, 0, max(t, floor)
    cosines, across, lowest, highest, reach, below = 0.0, 0.0, math.inf, 0.0, 0.0, 0.0
    for i in range(k):
        if sigma[i] > split:
            above += 1
            lowest, highest = min(lowest, sigma[i]), max(highest, sigma[i])
            for j in range(k):
                ratio = G[i, j] / sigma[i]
                if not sigma[j] > split:
                    across += ratio * ratio
                elif i != j:
                    cosines += (ratio / sigma[j]) ** 2
        else:
            row = 0.0
            for j in range(k):
                row += abs(G[i, j]) if not sigma[j] > split else 0.0
            reach = max(reach, row)
            below += G[i, i]
    excess, c = math.sqrt(reach) - t, math.sqrt(cosines)
    if not c <= 0.25 or not across + below < math.inf:
        return math.inf, excess <= 0.0
    bound = t * (c + 4.0 * c * c) + math.sqrt(across / (1.0 - c))
    if above > 0:
        bound += math.sqrt(above) * max(t - math.sqrt(1.0 - c) * lowest, 0.0)
    if summed:
        bound += 2.0 * c * c * highest
    if split > t:
        bound += math.sqrt(below)
    return bound + min(math.sqrt(k - above) * max(excess, 0.0), math.sqrt(below)), excess <= 0.0


@kernel
def rounding(rows: int, columns: int) -> float:
    """An allowance for floating-point error, relative to ‖S‖_F; tests confirm that it is generous."""
    return ROUNDING * (8.0 + min(rows, columns) + math.sqrt(max(rows, columns)))
