"""Least squares in one round, for every λ.

Clients send Σ x xᵀ, Σ x y, Σ x, Σ y, Σ y² and n_k, once. With an intercept the server centres them,

    minimise over v   ½vᵀHv − cᵀv + h(v),    H = Σ s (x − x̄)(x − x̄)ᵀ,   c = Σ s (x − x̄)(y − ȳ),

and the intercept is ȳ − x̄·v. Paths, cross-validation and certificates then cost no further round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unpooled.algorithms.base import State
from unpooled.exact.base import ExactSolver, bound, opened, refused
from unpooled.exact.certificate import quadratic_bound
from unpooled.exact.quadratic import accelerated, minimise
from unpooled.exact.shrinkage import Blocks, Whole, shrinkage
from unpooled.exact.site import FLAT, unpacked
from unpooled.kernels.arrays import Arrays, Float
from unpooled.problem import BoundProblem

FAR = 1e5  # x̄²/var x beyond which centring at the server would lose digits: clients are asked to centre


@dataclass(frozen=True)
class SufficientStatistics(ExactSolver):
    """One round of Gram matrices; a second one, centred, where a mean is very large beside its spread."""

    name: ClassVar[str] = "sufficient statistics"
    was: ClassVar[str] = "were"
    is_second_order: ClassVar[bool] = True

    def is_final(self, state: State) -> bool:
        """Once the statistics are there."""
        return "gram" in state.arrays

    def lacks(self, problem: BoundProblem) -> str | None:
        """Only least squares has sufficient statistics of fixed size."""
        is_squared = problem.linear is not None and problem.linear.is_least_squares
        return None if is_squared else "the squared loss"

    def broadcast(self, problem: BoundProblem, state: State) -> Arrays:
        """Moments and the Gram matrix of all features, centred at zero, then perhaps at the means."""
        features = {"features": np.arange(problem.layout.n_coefficients)}
        return features | ({"center": state.arrays["center"]} if "center" in state.arrays else {})

    def server_update(self, problem: BoundProblem, state: State, total: Arrays) -> State:
        """Solve, or ask for centred statistics."""
        sent = {f"sent/{name}": array for name, array in total.items()}  # for whoever takes over
        if refused(total).any():
            return State(state.round + 1, state.arrays | {"refused": refused(total)} | sent)
        arrays = opened(problem, state, total)
        p = problem.layout.n_coefficients
        arrays["gram"] = unpacked(total["gram"], p)
        start, far = state.arrays["start"], False
        if "center" in state.arrays:
            arrays["center"] = state.arrays["center"]
        elif problem.layout.n_intercepts:
            means = np.append(total["mean_x"], total["mean_t"])
            spread = np.append(np.diag(arrays["gram"]), total["mean_yy"]) - means**2
            far = bool((means**2 > FAR * spread).any())
        if far:
            return State(1, {"start": start, "center": means, "refused": refused(total)} | sent)
        arrays["solution"] = start[:p]
        return self.again(problem, State(state.round + 1, arrays))

    def again(self, problem: BoundProblem, state: State) -> State:
        """Solve for this problem's λ; nothing is asked."""
        a, p, h = state.arrays, problem.layout.n_coefficients, shrinkage(problem)
        H, c, yy = quadratic(problem, a)
        if isinstance(h, Blocks):
            v = minimise(H, c, h.within(np.arange(p)), a["solution"], thorough=True)
        else:
            v = accelerated(H, c, h.of_coefficients() if isinstance(h, Whole) else h, a["solution"])
        Hv = H @ v
        loss = max(0.5 * yy + float(v @ (0.5 * Hv - c)), 0.0)
        w, gradient = v, Hv - c
        if problem.layout.n_intercepts:
            w, gradient = np.append(v, a["mean_t"][0] - a["mean_x"] @ v), np.append(gradient, 0.0)
        arrays = a | {"solution": v, "w": w, "loss": np.array(loss), "gradient": gradient}
        arrays["dual"] = np.array(-np.inf)
        arrays["dual"] = np.array(bound(problem, arrays))
        if isinstance(h, Blocks) and h.free.size:
            arrays["dual"] = np.array(quadratic_bound(H, c, yy, h.within(np.arange(p)), v))
        return State(state.round, arrays)

    def estimate(self, problem: BoundProblem, state: State) -> Float:
        """The model in the coordinates of the data, not of the centred ones."""
        w, p = state.arrays["w"].copy(), problem.layout.n_coefficients
        if "center" in state.arrays:
            w[p] += state.arrays["center"][p] - state.arrays["center"][:p] @ w[:p]
        return w


def quadratic(problem: BoundProblem, a: Arrays) -> tuple[Float, Float, float]:
    """H, c and Σ s y², of centred rows where there is an intercept."""
    if not problem.layout.n_intercepts:
        return a["gram"], a["mean_xt"], float(a["mean_yy"])
    x, t = a["mean_x"], float(a["mean_t"][0])
    H, c = a["gram"] - np.multiply.outer(x, x), a["mean_xt"] - t * x
    if "center" in a:  # what centring left of a constant column is rounding
        constant = np.diag(H) <= np.square(FLAT * a["center"][: len(c)])
        H, c = np.where(constant[:, None] | constant, 0.0, H), np.where(constant, 0.0, c)
    return H, c, float(a["mean_yy"]) - t * t
