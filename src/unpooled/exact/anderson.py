"""Proximal gradient steps with Anderson acceleration: one gradient of p numbers a round.

The map y ↦ G(y) = x − ∇L(x)/L, x = prox_{h/L}(y), has the optimum as prox of its fixed point. From the last
m pairs (y_i, G(y_i)) take the weights with Σ α_i = 1 that make ‖Σ α_i (G(y_i) − y_i)‖ least, and

    y⁺ = Σ α_i G(y_i)          (Mai and Johansson 2020).

A point whose objective is not below that of the best one is not kept: the plain step from the best follows,
whose descent is certain; what was learnt there stays in the memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unpooled.algorithms.base import State
from unpooled.exact.base import bound
from unpooled.exact.gradient_steps import (
    GradientSolver,
    first_facts,
    grown,
    inner,
    inner_gradient,
    outer,
    penalty_in_units,
    seen_curvature,
)
from unpooled.exact.shrinkage import shrinkage
from unpooled.kernels.arrays import Arrays, Float
from unpooled.problem import BoundProblem

RIDGE = 1e-12  # of the least squares for α, relative


@dataclass(frozen=True)
class AndersonProxGradient(GradientSolver):
    """``memory``: how many pairs are kept. Any loss, any penalty with a prox."""

    memory: int = 8

    name: ClassVar[str] = "Anderson prox-gradient"

    def server_update(self, problem: BoundProblem, state: State, total: Arrays) -> State:
        """Keep the point if it is the best, and take the next step."""
        if state.round == 0:
            return self.again(problem, State(1, first_facts(problem, state, total)))
        a, h = dict(state.arrays), shrinkage(problem)
        new = {"loss": total["loss"], "inner_gradient": inner_gradient(problem, a, total["gradient"])}
        v = inner(problem, a, a["next"])
        sound = bool(np.isfinite(total["loss"]) and np.isfinite(total["gradient"]).all())
        seen = seen_curvature(v - a["v"], a, new) if sound else np.inf
        now = float(a["loss"]) + h.value(a["w"])
        trial = float(total["loss"]) + h.value(a["next"]) if sound else np.inf
        better = trial <= now + 1e-15 * (abs(now) + float(a["scales"][0]))
        L, plain = float(a["L"]), bool(a["plain"])
        if not better and (seen > L or plain):  # a plain step fails only where L is too small
            L = grown(L, max(seen, 2.0 * L if plain else 0.0))
            a |= {"L": np.array(L), "ys": a["ys"][:0], "Gs": a["Gs"][:0]}  # the map changes with L
        elif sound:
            a["ys"] = np.vstack([a["ys"], a["y"]])[-self.memory :]
            a["Gs"] = np.vstack([a["Gs"], v - new["inner_gradient"] / L])[-self.memory :]
        if better:
            a |= {"w": a["next"], "v": v, "gradient": total["gradient"], **new}
            a["dual"] = np.array(bound(problem, a))
        if better and len(a["ys"]) > 1:
            return self._ask(problem, State(state.round + 1, a), mixed(a["ys"], a["Gs"]))
        return self._plain(problem, State(state.round + 1, a))

    def again(self, problem: BoundProblem, state: State) -> State:
        """A plain step from the last point."""
        a = state.arrays | {"dual": np.array(-np.inf)}
        a |= {"v": inner(problem, a, a["w"]), "inner_gradient": inner_gradient(problem, a, a["gradient"])}
        empty = np.empty((0, len(a["v"])))
        a |= {"ys": empty, "Gs": empty, "dual": np.array(bound(problem, a))}
        return self._plain(problem, State(state.round, a))

    def _plain(self, problem: BoundProblem, state: State) -> State:
        a = state.arrays
        return self._ask(problem, state, a["v"] - a["inner_gradient"] / float(a["L"]), plain=True)

    def _ask(self, problem: BoundProblem, state: State, y: Float, plain: bool = False) -> State:
        x = penalty_in_units(problem, state.arrays).prox(y, 1.0 / float(state.arrays["L"]))
        asked = {"y": y, "next": outer(problem, state.arrays, x), "plain": np.array(plain)}
        return State(state.round, state.arrays | asked)


def mixed(ys: Float, Gs: Float) -> Float:
    """Σ α_i G(y_i), α the minimiser of ‖Σ α_i (G(y_i) − y_i)‖ with Σ α_i = 1."""
    R = Gs - ys
    M = R @ R.T
    M[np.diag_indices(len(M))] += RIDGE * float(np.trace(M)) + 1e-300
    alpha = np.linalg.solve(M, np.ones(len(M)))
    return np.asarray(alpha / alpha.sum() @ Gs)
