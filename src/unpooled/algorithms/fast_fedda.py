"""Fast-FedDA, Algorithm 1 of Bao, Crawshaw, Luo, Liu (ICML 2022)."""

from __future__ import annotations

import dataclasses
import functools
import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from unpooled.algorithms.base import State
from unpooled.algorithms.curvature import Curvature
from unpooled.algorithms.dual_averaging import DualAlgorithm, DualAveraging, dual_prox, moved
from unpooled.algorithms.schedule import alpha, total
from unpooled.kernels.arrays import Array, Arrays, Float
from unpooled.problem import BoundProblem

BLOCK, STEPS = 64, 2**14  # rounds, and steps in all, whose weights are computed together


@dataclass(frozen=True)
class FastFedDA(DualAlgorithm):
    """Fast Federated Dual Averaging, for strongly convex losses.

    With local steps t = rE … (r+1)E − 1 in round r, every client runs

        g_t = g_{t−1} + α_t ∇f(w_t; ξ_t)
        w_{t+1} = argmin ⟨w, g_t − μw̃_t/2 − γ̃w_0⟩ + (μA_t/2 + γ̃)‖w‖²/2 + A_t h(w),   w̃_t = Σ_{i≤t} α_i w_i

    and the server averages. Only h_t = g_t − μw̃_t/2 − γ̃w_0 enters the argmin, and it obeys
    h_t = h_{t−1} + α_t(∇f − μw_t/2): one vector each way, where the paper's box sends two.

    Parameters
    ----------
    mu : strong convexity of the smooth part, or what stands for it in the schedule. None takes 4γ̃/a in the
        polynomial schedule of a run whose length is known, and else measures it.
    gamma : γ̃, the inverse of the first step. None takes ¾ of the largest expected smoothness of a client, or
        with one local step of the round's mean gradient.
    local_steps : E. None takes 10; where mu, gamma and a are open too and every round has all clients with
        all their rows, it takes 1 if that is expected to come further.
    schedule : "polynomial" α_t = (1 + t/a)², "uniform" α_t = 1 (the paper's experiments),
        "theory" (the paper's theorem: a = 4L/μ, γ̃ = 2μa), "measured" (polynomial with numbers of the data
        alone, whatever the run's length: γ̃ of the worst client, μ measured, a = 4γ̃/μ).
    a : of the polynomial schedule: after about a steps they shrink as 1/t. None takes 4γ̃/μ where mu is
        given, and else balances the way to go against drift and noise at the end of the run.
    output : "last" server iterate, or the α-weighted "average" of the server iterates.
    """

    mu: float | None = None
    gamma: float | None = None
    local_steps: int | None = None
    schedule: str = "polynomial"
    a: float | None = None
    output: str = "last"

    def resolve(self, curvature: Curvature, rounds: int | None) -> tuple[Self, list[str]]:
        """Choose mu, gamma, a and local_steps where they are open."""
        numbers, said = self.chosen(curvature, rounds, per_round=False)
        return dataclasses.replace(self, **numbers), said

    def weights(self, t: Array | float) -> tuple[Array, Array]:
        """A_t and c_t = μA_t/2 + γ̃ after step t."""
        mu, gamma, a = self.numbers
        A = total(t, a)
        return A, 0.5 * mu * A + gamma

    def _point(self, problem: BoundProblem, h: Float, round: int) -> Float:
        """The server's iterate w_{rE} = prox_{rE−1}(h)."""
        A, c = self.weights(round * self.E - 1)
        return dual_prox(problem, h, float(A), float(c))

    def init(self, problem: BoundProblem, w0: Float) -> State:
        """h_{−1} = −γ̃w_0."""
        h = -self.numbers.gamma * w0
        return State(0, {"h": h, "average": w0} if self.output == "average" else {"h": h})

    def broadcast(self, problem: BoundProblem, state: State) -> Arrays:
        """One vector down."""
        return {"h": state.arrays["h"]}

    def unpack(self, problem: BoundProblem, down: Arrays, round: int) -> Arrays:
        """The round's first point, from h alone."""
        return {"h": down["h"], "w": self._point(problem, down["h"], round)}

    def plan(self, problem: BoundProblem, round: int) -> DualAveraging:
        """The weights of this round's steps."""
        together = max(1, min(BLOCK, STEPS // self.E))
        block, index = divmod(round, together)
        now = slice(index * self.E, (index + 1) * self.E)
        weights, A, c = _steps(self, block, together)
        return DualAveraging(weights[now], A[now], c[now], float(self.numbers.mu), math.inf)

    def server_update(self, problem: BoundProblem, state: State, mean: Arrays, participation: float) -> State:
        """h += mean increment; the share of the new iterate in the average."""
        r, E = state.round + 1, self.E
        h = state.arrays["h"] + mean["dual_increment"]
        if self.output == "last":
            return State(r, {"h": h})
        share = 1.0 - self.weights((r - 1) * E - 1)[0] / self.weights(r * E - 1)[0]
        average = moved(state.arrays["average"], self._point(problem, h, r), float(share))
        return State(r, {"h": h, "average": average})

    def estimate(self, problem: BoundProblem, state: State) -> Float:
        """The last server iterate, which h has in it, or the α-weighted average of all."""
        if self.output == "average":
            return state.arrays["average"]
        return self._point(problem, state.arrays["h"], state.round)


@functools.lru_cache(maxsize=8)
def _steps(algorithm: FastFedDA, block: int, rounds: int) -> tuple[Array, Array, Array]:
    """α_t, A_t and c_t of so many rounds at once: on a few numbers NumPy takes as long as on many."""
    count = rounds * algorithm.E
    t = block * count + np.arange(count)
    return alpha(t, algorithm.numbers.a), *algorithm.weights(t)
