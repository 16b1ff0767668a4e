"""How far a model is from the optimum, proven from what clients answered at it.

For P(w) = Σ_i s_i ℓ(z_i, y_i) + h(w), Σ s_i = 1, every dual point u gives a lower bound of P*,

    D(u) = −Σ_i s_i ℓ*(u_i) − h*(−Σ_i s_i x_i u_i),     with Σ_i s_i u_i = 0 where there is an intercept.

At w take u_i = dℓ/dz_i. Then Σ s_i x_i u_i = G, the gradient, and Fenchel's equality gives
Σ s_i ℓ*(u_i) = ⟨G, w⟩ − f: no further statistic and no further round. Two repairs make u feasible, and each
one only lowers D, because ℓ* is convex:

- the intercept's mean residual is mixed away with a constant prediction (``LinearLoss.balance``);
- u is scaled by α ≤ 1 until h* is finite, ℓ*(αu) ≤ αℓ*(u) + (1 − α)ℓ*(0).

So the reported gap is never smaller than the true one, up to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from unpooled.kernels.arrays import Array, Arrays, Float
from unpooled.problem import BoundProblem

if TYPE_CHECKING:
    from unpooled.exact.shrinkage import Blocks, Shrinkage

GRID = 65  # scalings tried where h* is not an indicator


@dataclass(frozen=True)
class Certificate:
    """``gap`` ≥ P(w) − P*, where ``kind`` is "duality gap"; ``relative`` = gap / ``scale``.

    The scale is the loss that a perfect fit would take off the model without coefficients (half the
    variance of y, the entropy of the labels, half the null deviance); for other losses that of the first
    point. Where there is no dual bound (a loss without a conjugate or a penalty without a dual norm, which
    need not even be convex; unpenalised coefficients by gradients alone, or with ``Huber``) ``kind`` is "KKT
    residual": the gap is then the largest entry of w − prox(w − ∇L(w)), which is zero at an optimum, and the
    scale that of the gradient at w = 0.
    """

    gap: float
    relative: float
    kind: str
    objective: float
    dual: float
    scale: float

    def __str__(self) -> str:
        return f"{self.kind} {self.gap:.3g} ({self.relative:.2g} of {self.scale:.3g})"


def has_dual(problem: BoundProblem, h: Shrinkage) -> bool:
    """Whether every point gives a dual bound without a further question."""
    loss = problem.linear
    if loss is None or not loss.offers("conjugate") or not h.has_dual:
        return False
    return not problem.layout.n_intercepts or loss.offers("balance")


def certify(
    problem: BoundProblem,
    h: Shrinkage,
    w: Float,
    loss: float,
    gradient: Float,
    moments: Arrays,
    scales: tuple[float, float],
    best_dual: float = -np.inf,
) -> Certificate:
    """The certificate of w, from the loss and the gradient there.

    ``scales`` are those of the loss and of the gradient; ``best_dual`` is a bound known from before.
    """
    objective = loss + h.value(w)
    dual = best_dual
    if has_dual(problem, h):
        dual = max(dual, dual_bound(problem, h, w, loss, gradient, moments))
    if dual == -np.inf:
        residual = float(np.abs(w - h.prox(w - gradient, 1.0)).max(initial=0.0))
        return Certificate(residual, residual / scales[1], "KKT residual", objective, -np.inf, scales[1])
    gap = max(objective - dual, 0.0)
    return Certificate(gap, gap / scales[0], "duality gap", objective, dual, scales[0])


def dual_bound(
    problem: BoundProblem, h: Shrinkage, w: Float, loss: float, gradient: Float, moments: Arrays
) -> float:
    """A lower bound of the optimal objective, from the dual point u = ℓ'(z)."""
    conjugate = float(gradient @ w) - loss
    assert problem.linear is not None
    square = 2.0 * loss if problem.linear.is_least_squares else None
    return bound_of(problem, h, conjugate, gradient, moments, square)


def bound_of(
    problem: BoundProblem,
    h: Shrinkage,
    conjugate: float,
    gradient: Float,
    moments: Arrays,
    square: float | None = None,
    free: Array | None = None,
) -> float:
    """The bound of a dual point u: ``conjugate`` is Σ s ℓ*(u), ``gradient`` Σ s x u with Σ s u behind it.

    ``square`` is Σ s u² where the loss is squared: then the best factor of u is known. The gradient is zero
    up to rounding at the ``free`` coordinates.
    """
    n = problem.layout.n_coefficients
    G, most = gradient[:n], 1.0
    assert problem.linear is not None
    if problem.layout.n_intercepts and problem.linear.offers("balance"):
        x, t, xt = moments["mean_x"], moments["mean_t"], moments["mean_xt"]
        conjugate, G, most = problem.linear.balance(conjugate, G, gradient[n:], x, t, xt)
    u = np.concatenate([-G, np.zeros(problem.layout.n_intercepts)])
    if free is not None:
        u[free] = 0.0
    if square is not None:
        mean = float(gradient[n:].sum())
        return _least_squares(h, u, conjugate, max(square - mean**2, 0.0), most)
    alphas = np.linspace(0.0, min(most, h.limit(u)), GRID)
    conjugates = alphas * conjugate - (1.0 - alphas) * float(moments["floor"])
    return float(np.max(-conjugates - h.conjugates(u, alphas)))


def _least_squares(h: Shrinkage, u: Float, conjugate: float, square: float, most: float = 1.0) -> float:
    """The bound of the squared loss, whose ℓ* is known along the whole ray; ``square`` = Σ s u_i²."""
    alphas = np.linspace(0.0, min(most, h.limit(u)), GRID)
    cross = conjugate - 0.5 * square
    best = float(np.clip(-cross / square, 0.0, alphas[-1])) if square > 0.0 else 0.0
    alphas = np.append(alphas, best)
    conjugates = 0.5 * square * alphas**2 + cross * alphas
    return float(np.max(-conjugates - h.conjugates(u, alphas)))


def quadratic_bound(H: Float, c: Float, yy: float, h: Blocks, v: Float) -> float:
    """A lower bound of min ½yy − cᵀv + ½vᵀHv + h(v) where some coordinates of v are free.

    Their minimum is taken in closed form (Frisch and Waugh), which leaves a least-squares problem in the
    others, with the same optimum and a penalty on every coordinate.
    """
    free, rest = h.free, np.setdiff1d(np.arange(len(c)), h.free)
    if not rest.size:
        return 0.5 * max(yy - float(c @ np.linalg.pinv(H, rcond=1e-14, hermitian=True) @ c), 0.0)
    explained = np.linalg.pinv(H[np.ix_(free, free)], rcond=1e-14, hermitian=True) @ np.column_stack(
        [H[np.ix_(free, rest)], c[free]]
    )
    reduced = H[np.ix_(rest, rest)] - H[np.ix_(rest, free)] @ explained[:, :-1]
    c_left = c[rest] - H[np.ix_(rest, free)] @ explained[:, -1]
    yy_left = max(yy - float(c[free] @ explained[:, -1]), 0.0)
    g = reduced @ v[rest] - c_left
    loss = max(0.5 * (yy_left + float(v[rest] @ (g - c_left))), 0.0)
    return _least_squares(h.within(rest), -g, float(g @ v[rest]) - loss, 2.0 * loss)
