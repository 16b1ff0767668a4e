"""A dual point that is feasible where the gradient alone is not, asked for in a round that is made anyway.

A dual point needs |G_j| ≤ λ_j, and G_j = 0 where the penalty leaves j free. At u = ℓ'(z) that holds up to
rounding at best, and the cure of ``certificate`` (scale u by α ≤ 1) costs (1 − α) of the loss: too much where
λ is tiny, and useless where coefficients are free. Here u moves within the rows instead,

    u' = u + ℓ''·(x·δ),    G' = G + Hδ,

with δ such that G' lies inside by a little more than rounding. The cost is of second order in δ. Clients
answer with Σ share ℓ*(u') and Σ share x u', which make the bound.
"""

from __future__ import annotations

import numpy as np

from unpooled.exact.certificate import bound_of
from unpooled.exact.shrinkage import Blocks, Shrinkage
from unpooled.kernels.arrays import Array, Arrays, Float
from unpooled.problem import BoundProblem

CLOSE = 1e-11  # of the scale: where a Newton step promises less, a gap above it is the dual point's
LAG = 10.0  # how many times that the gap may be
INSIDE = 1e-14  # of the scale of the gradient: its rounding, from which G' stays away


def can_tilt(problem: BoundProblem) -> bool:
    """Whether ℓ* and ℓ'' are known."""
    loss = problem.linear
    return loss is not None and loss.is_smooth and loss.offers("second_derivative", "conjugate")


def lags(problem: BoundProblem, a: Arrays, h: Blocks) -> bool:
    """Whether the gap is far larger than what the next step promises."""
    promised, scale = -float(a["predicted"]), float(a["scales"][0])
    if not can_tilt(problem) or promised > CLOSE * scale or not a["on"].size:
        return False
    gap = float(a["loss"]) + h.value(a["w"]) - float(a["dual"])
    return gap > LAG * promised + 1e-12 * scale


def tilt(a: Arrays, h: Blocks, on: Array, H: Float) -> Float:
    """δ, which moves the gradient of the coordinates that are free or not zero, or too steep, inside."""
    from scipy import linalg

    G, w, own = a["gradient"][on], a["w"][on], h.within(on)
    norms, margin = own.norms(G), np.minimum(0.1 * own.weight, INSIDE * float(a["scales"][1]))
    most = own.weight - margin
    is_ridge = own.ridge > 0.0
    factor = np.where(norms > most, most / np.where(norms > 0.0, norms, 1.0), 1.0)
    wanted = np.where(is_ridge, 0.0, (factor[own.of] - 1.0) * G)
    active = ((own.norms(w) > 0.0) | (own.weight == 0.0))[own.of] | (wanted != 0.0)
    A = np.flatnonzero(active)
    delta = np.zeros(len(a["w"]))
    if A.size:
        solved = linalg.lstsq(H[np.ix_(A, A)], wanted[A], cond=1e-13)[0]
        delta[on[A]] = solved
    return delta


def tilted_bound(problem: BoundProblem, h: Shrinkage, a: Arrays, total: Arrays) -> float:
    """The lower bound that a tilted dual point proves; −inf where it is none."""
    conjugate, G = float(total["conjugate"]), total["dual_gradient"]
    if not np.isfinite(conjugate) or not np.isfinite(G).all():
        return -np.inf
    assert problem.linear is not None
    free = h.free if isinstance(h, Blocks) else np.empty(0, dtype=np.int64)
    if not problem.linear.offers("balance"):  # then the residuals have to sum to zero as they are
        free = np.append(free, np.arange(problem.layout.n_coefficients, problem.layout.size))
    rest = np.abs(G[free])
    if rest.max(initial=0.0) > 1e3 * INSIDE * float(a["scales"][1]):
        return -np.inf
    slack = 2.0 * float(rest @ np.abs(a["w"][free]))  # rounding: G' is never exactly zero there
    return bound_of(problem, h, conjugate, G, a, free=free) - slack
