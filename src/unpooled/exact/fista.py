"""Accelerated proximal gradient steps with restarts: one gradient of p numbers a round.

    x⁺ = prox_{h/L}(v − ∇L(v)/L),    v⁺ = x⁺ + (t − 1)/t⁺ (x⁺ − x),    t⁺ = ½ + √(¼ + t²)

(Beck and Teboulle 2009); where the momentum points uphill it starts again from t = 1 (O'Donoghue and Candès
2015). The points v are the ones that clients evaluate, and the ones that certificates are about.
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
from unpooled.kernels.arrays import Arrays
from unpooled.problem import BoundProblem


@dataclass(frozen=True)
class Fista(GradientSolver):
    """Any loss, any penalty with a prox."""

    name: ClassVar[str] = "FISTA"

    def server_update(self, problem: BoundProblem, state: State, total: Arrays) -> State:
        """A step from the point, or a shorter one from the point before."""
        if state.round == 0:
            return self.again(problem, State(1, first_facts(problem, state, total)))
        a = dict(state.arrays)
        new = {"loss": total["loss"], "inner_gradient": inner_gradient(problem, a, total["gradient"])}
        v = inner(problem, a, a["next"])
        step = v - a["v"]
        sound = bool(np.isfinite(total["loss"]) and np.isfinite(total["gradient"]).all())
        seen = seen_curvature(step, a, new) if sound else 4.0 * float(a["L"])
        if seen > float(a["L"]):
            a["L"], a["t"] = np.array(grown(float(a["L"]), seen)), np.array(1.0)
        rise = float(total["loss"]) - float(a["loss"]) if sound else np.inf
        if rise <= float(a["scales"][0]):
            a |= {"w": a["next"], "v": v, "gradient": total["gradient"], **new}
            a["dual"] = np.array(bound(problem, a))
        else:  # far uphill: go back
            a["x"], a["t"] = a["v"], np.array(1.0)
            a["L"] = np.array(max(float(a["L"]), 2.0 * float(state.arrays["L"])))
        return self._step(problem, State(state.round + 1, a))

    def again(self, problem: BoundProblem, state: State) -> State:
        """A first step from the last point."""
        a = state.arrays | {"dual": np.array(-np.inf), "t": np.array(1.0)}
        a |= {"v": inner(problem, a, a["w"]), "inner_gradient": inner_gradient(problem, a, a["gradient"])}
        a |= {"x": a["v"], "dual": np.array(bound(problem, a))}
        return self._step(problem, State(state.round, a))

    def _step(self, problem: BoundProblem, state: State) -> State:
        a = dict(state.arrays)
        L, t = float(a["L"]), float(a["t"])
        x = penalty_in_units(problem, a).prox(a["v"] - a["inner_gradient"] / L, 1.0 / L)
        if float((a["v"] - x) @ (x - a["x"])) > 0.0:
            t = 1.0
        later = 0.5 + float(np.sqrt(0.25 + t * t))
        a["next"] = outer(problem, a, x + (t - 1.0) / later * (x - a["x"]))
        return State(state.round, a | {"x": x, "t": np.array(later)})
