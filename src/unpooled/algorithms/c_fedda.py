"""C-FedDA, Algorithm 2 of Bao, Crawshaw, Luo, Liu (ICML 2022)."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from unpooled.algorithms.base import State
from unpooled.algorithms.curvature import Curvature
from unpooled.algorithms.dual_averaging import DualAlgorithm, DualAveraging, dual_prox, moved
from unpooled.algorithms.schedule import alpha, total
from unpooled.kernels.arrays import Arrays, Float
from unpooled.problem import BoundProblem


@dataclass(frozen=True)
class CFedDA(DualAlgorithm):
    """Constrained Federated Dual Averaging, for restricted strongly convex losses.

    In round r every client starts at w̄_r and takes E steps

        g = g + α_r ∇f(w; ξ)
        w = argmin ⟨w, g − μEw̃_r/2 − γ̃Ew_0⟩ + (μA_r/2 + γ̃)E‖w‖²/2 + A_rE h(w)   over R(w − w_0) ≤ radius

    with w̃_r = Σ_{j≤r} α_j w̄_j, which only the server moves; the server averages g and takes the same
    argmin. On the wire goes h = g − μEw̃_{r−1}/2 − γ̃Ew_0, from which a client recovers w̄_r, and the center
    w_0 where the radius is finite. The constrained argmin is exact. With E = 1 and no radius this is
    Fast-FedDA.

    Parameters
    ----------
    mu : as for FastFedDA.
    gamma : γ̃; the quadratic is γ̃E as in the paper's box, so 1/(γ̃E) is the first step. None takes
        FastFedDA's over E.
    local_steps : E, as for FastFedDA.
    radius : of the constraint R(w − w_0) ≤ radius.
    schedule, a, output : as for FastFedDA, counted in rounds.
    """

    mu: float | None = None
    gamma: float | None = None
    local_steps: int | None = None
    radius: float = math.inf
    schedule: str = "polynomial"
    a: float | None = None
    output: str = "last"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.radius >= 0:
            raise ValueError(f"radius must be a number ≥ 0 (inf for none), got {self.radius!r}")

    def resolve(self, curvature: Curvature, rounds: int | None) -> tuple[Self, list[str]]:
        """Choose mu, gamma, a and local_steps where they are open."""
        numbers, said = self.chosen(curvature, rounds, per_round=True)
        return dataclasses.replace(self, **numbers), said

    def problem_at(self, problem: BoundProblem, round: int) -> BoundProblem:
        """The problem with its constraint, where the radius is finite."""
        return problem if math.isinf(self.radius) else problem.with_constraint()

    def _weights(self, round: int) -> tuple[float, float]:
        """A_rE and c_r = (μA_r/2 + γ̃)E of round r."""
        mu, gamma, a = self.numbers
        A = float(total(round, a))
        return A * self.E, (0.5 * mu * A + gamma) * self.E

    def _pull(self, round: int) -> float:
        """μE/2 · α_r, the weight with which w̄_r enters h."""
        return 0.5 * self.numbers.mu * self.E * float(alpha(round, self.numbers.a))

    def _point(self, problem: BoundProblem, h: Float, round: int, center: Float | None) -> Float:
        """The server's iterate w̄_r = cprox_{r−1}(h)."""
        A, c = self._weights(round - 1)
        return dual_prox(problem, h, A, c, center, self.radius)

    def init(self, problem: BoundProblem, w0: Float) -> State:
        """h = −γ̃Ew_0."""
        h = -self.numbers.gamma * self.E * w0
        arrays = {"h": h, "w": self._point(problem, h, 0, w0)}
        if not math.isinf(self.radius):
            arrays["center"] = w0
        if self.output == "average":
            arrays["average"] = w0
        return State(0, arrays)

    def broadcast(self, problem: BoundProblem, state: State) -> Arrays:
        """One vector down; two where there is a radius."""
        return {name: state.arrays[name] for name in ("h", "center") if name in state.arrays}

    def unpack(self, problem: BoundProblem, down: Arrays, round: int) -> Arrays:
        """The round's first point w̄_r, and h with w̄_r's pull in it."""
        w = self._point(problem, down["h"], round, down.get("center"))
        point = {"h": down["h"] - self._pull(round) * w, "w": w}
        return point | {"center": down["center"]} if "center" in down else point

    def plan(self, problem: BoundProblem, round: int) -> DualAveraging:
        """The same weights for every step of the round; μ stays at the server."""
        E = self.E
        A, c = self._weights(round)
        alpha_r = np.full(E, float(alpha(round, self.numbers.a)))
        return DualAveraging(alpha_r, np.full(E, A), np.full(E, c), 0.0, float(self.radius))

    def server_update(self, problem: BoundProblem, state: State, mean: Arrays, participation: float) -> State:
        """h += w̄_r's pull and the mean increment; the new iterate; its share of the average."""
        r, old = state.round, state.arrays
        h = old["h"] - self._pull(r) * old["w"] + mean["dual_increment"]
        arrays = {**old, "h": h, "w": self._point(problem, h, r + 1, old.get("center"))}
        if self.output == "average":
            share = float(alpha(r, self.numbers.a) / total(r, self.numbers.a))
            arrays["average"] = moved(old["average"], arrays["w"], share)
        return State(r + 1, arrays)

    def estimate(self, problem: BoundProblem, state: State) -> Float:
        """The last server iterate, or the α-weighted average of all."""
        return state.arrays["average" if self.output == "average" else "w"]
