"""FedDA, federated dual averaging of Yuan, Zaheer, Reddi (ICML 2021)."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from unpooled.algorithms.base import Algorithm, State, check_positive, whole_steps
from unpooled.algorithms.curvature import Curvature
from unpooled.algorithms.dual_averaging import DualAveraging, dual_prox
from unpooled.algorithms.tuning import default_step
from unpooled.kernels.arrays import Arrays, Float
from unpooled.problem import BoundProblem


@dataclass(frozen=True)
class FedDA(Algorithm):
    """Federated Dual Averaging.

    At local step j of round r a client moves its dual vector and reads its point off it:

        z ← z − η ∇f(w; ξ),    w = prox of η(η_s rE + j + 1)·h at z

    and the server adds η_s times the mean increment. With η_s = 1 this is Fast-FedDA with μ = 0, uniform
    weights and γ̃ = 1/η, and shares its loop: h = −z/η.

    Parameters
    ----------
    step : η, the clients' step; None takes the inverse of ¾ of the largest expected smoothness.
    local_steps : E.
    server_step : η_s.
    """

    step: float | None = None
    local_steps: int = 10
    server_step: float = 1.0

    uploads: ClassVar[tuple[str, ...]] = ("dual_increment",)
    coordinatewise: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "local_steps", whole_steps(self.local_steps))
        check_positive(step=self.step, server_step=self.server_step)

    def resolve(self, curvature: Curvature, rounds: int | None) -> tuple[Self, list[str]]:
        """Choose the step where it is open."""
        step, said = default_step(self.step, curvature)
        return dataclasses.replace(self, step=step), said

    @property
    def _c(self) -> float:
        """The weight 1/η of the quadratic."""
        if self.step is None:
            raise ValueError(f"{self} has no step; simulate chooses it, or call resolve")
        return 1.0 / self.step

    def _elapsed(self, round: int) -> float:
        """η_s rE, the steps behind the penalty's weight."""
        return float(self.server_step * round * self.local_steps)

    def _point(self, problem: BoundProblem, h: Float, round: int) -> Float:
        """The server's iterate after so many rounds."""
        return dual_prox(problem, h, self._elapsed(round), self._c)

    def init(self, problem: BoundProblem, w0: Float) -> State:
        """z = w_0."""
        return State(0, {"h": -self._c * w0})

    def broadcast(self, problem: BoundProblem, state: State) -> Arrays:
        """One vector down."""
        return {"h": state.arrays["h"]}

    def unpack(self, problem: BoundProblem, down: Arrays, round: int) -> Arrays:
        """The round's first point."""
        return {"h": down["h"], "w": self._point(problem, down["h"], round)}

    def plan(self, problem: BoundProblem, round: int) -> DualAveraging:
        """Uniform weights; the penalty's weight grows by one a step."""
        E = self.local_steps
        A = self._elapsed(round) + 1.0 + np.arange(E)
        return DualAveraging(np.ones(E), A, np.full(E, self._c), 0.0, math.inf)

    def server_update(self, problem: BoundProblem, state: State, mean: Arrays, participation: float) -> State:
        """h += η_s · mean increment."""
        h = state.arrays["h"] + self.server_step * mean["dual_increment"]
        return State(state.round + 1, {"h": h})

    def estimate(self, problem: BoundProblem, state: State) -> Float:
        """The last server iterate, which h has in it."""
        return self._point(problem, state.arrays["h"], state.round)
