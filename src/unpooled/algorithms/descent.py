"""The local loop of every method that steps in the primal: FedAvg, SCAFFOLD and FedMiD."""

from __future__ import annotations

import dataclasses
from math import isinf
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from unpooled.algorithms.base import Algorithm, State, check_positive, whole_steps
from unpooled.algorithms.curvature import Curvature
from unpooled.algorithms.gradients import stochastic_gradient, workspace
from unpooled.algorithms.tuning import default_step
from unpooled.algorithms.vectors import add_difference, assign, subtract
from unpooled.kernels.arrays import Array, Arrays, Float
from unpooled.kernels.compile import kernel
from unpooled.penalties.regulariser import prox, subgradient
from unpooled.problem import BoundProblem


class Descent(NamedTuple):
    """E local steps from the server's point,

        w ← w − η(∇f(w; ξ) + ∂h(w) + c − c_k)     or, where ``proximal``,    w ← prox_{ηh}(w − η∇f(w; ξ)),

    where ``controlled`` says whether there are control variates c (server) and c_k (client), and ``by_value``
    whether c_k − c is sent and not the change of c_k.
    """

    step: float
    local_steps: int
    proximal: bool
    controlled: bool
    by_value: bool = False

    @kernel
    def local_loop(
        self, oracle: Any, regulariser: Any, client: int, down: Array, memory: Array, up: Array
    ) -> None:
        """``down`` has w and perhaps c, ``memory`` perhaps c_k; ``up`` gets what w and c_k send."""
        u = down[0].copy()  # the iterate in full precision; w is its rounding to the precision of the data
        w = u.astype(oracle.rows.y.dtype)
        G, extra, v = np.empty_like(w), np.zeros(w.size), np.empty(w.size)
        work = workspace(oracle, client, w)
        for j in range(self.local_steps):
            stochastic_gradient(oracle, client, j, w, work, G)
            if not self.proximal:
                subgradient(regulariser, u, extra)
            if self.controlled:
                add_difference(extra, down[1], memory[0])
            move(u, self.step, G, extra, v)
            if self.proximal:
                prox(regulariser, v, self.step, v, np.inf, u)
            else:
                assign(u, v)
            assign(w, u)
        subtract(up[0], u, down[0])
        if self.controlled:
            refresh(memory[0], down[1], up[0], 1.0 / (self.step * self.local_steps), up[1])
            if self.by_value:
                subtract(up[1], memory[0], down[1])


class DescentAlgorithm(Algorithm):
    """What FedAvg, SCAFFOLD and FedMiD share: the clients' step η and the server's η_s."""

    coordinatewise: ClassVar[bool] = True
    step: float | None
    server_step: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "local_steps", whole_steps(self.local_steps))
        check_positive(step=self.step, server_step=self.server_step)

    def resolve(self, curvature: Curvature, rounds: int | None) -> tuple[Self, list[str]]:
        """Choose the step where it is open."""
        step, said = default_step(self.step, curvature)
        return dataclasses.replace(self, step=step), said  # type: ignore[type-var]

    def gentler(self, chosen: Self) -> tuple[Self, str] | None:
        """With half the step, where it was open."""
        if self.step is not None:
            return None
        step = 0.5 * chosen._step
        return dataclasses.replace(self, step=step), f"step = {step:.4g}"  # type: ignore[type-var]

    @property
    def _step(self) -> float:
        if self.step is None:
            raise ValueError(f"{self} has no step; simulate chooses it, or call resolve")
        return self.step

    def init(self, problem: BoundProblem, w0: Float) -> State:
        """The start."""
        if not isinf(problem.problem.ball) and not self.plan(problem, 0).proximal:
            raise ValueError(f"{type(self).__name__} does not project on a ball; FedMiD and the FedDAs do")
        return State(0, {"w": w0})

    def broadcast(self, problem: BoundProblem, state: State) -> Arrays:
        """The server's vectors as they are."""
        return state.arrays

    def estimate(self, problem: BoundProblem, state: State) -> Float:
        """The server's point."""
        return state.arrays["w"]


@kernel
def move(u: Array, step: float, G: Array, extra: Array, v: Array) -> None:
    """v ← u − η(G + extra)."""
    for q in range(u.size):
        v[q] = u[q] - step * (G[q] + extra[q])


@kernel
def refresh(c_k: Array, c: Array, moved: Array, scale: float, increment: Array) -> None:
    """c_k ← c_k − c + (w − w_k)/(ηE), with w_k − w in ``moved``; its change to ``increment``."""
    for q in range(c_k.size):
        increment[q] = -c[q] - scale * moved[q]
        c_k[q] += increment[q]
