"""The local loop of every dual-averaging method: FedDA, Fast-FedDA, C-FedDA and MC-FedDA."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from unpooled.algorithms.balance import Horizon
from unpooled.algorithms.base import Algorithm, check_number, check_positive, whole_steps
from unpooled.algorithms.curvature import Curvature
from unpooled.algorithms.gradients import stochastic_gradient, workspace
from unpooled.algorithms.schedule import check_schedule
from unpooled.algorithms.tuning import LOCAL_STEPS, DualNumbers, default_local_steps, dual_numbers
from unpooled.algorithms.vectors import subtract
from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel
from unpooled.penalties.regulariser import DualStep, ascend, dual_step
from unpooled.problem import BoundProblem


class DualAveraging(NamedTuple):
    """E local steps on the dual vector h, which carries every gradient seen and the start −γw_0:

        h ← h + α_j (∇f(w; ξ_j) − (μ/2) w)
        w ← argmin ⟨w, h⟩ + (c_j/2)‖w‖² + A_j h(w)    over R(w − center) ≤ radius

    Arrays over the round's steps j: ``alpha`` the weight of the gradient, ``A`` the weight of the
    penalty after the step, ``c`` that of the quadratic. ``mu`` is zero where the strong-convexity term is
    kept at the server.
    """

    alpha: Array
    A: Array
    c: Array
    mu: float
    radius: float

    @kernel
    def local_loop(
        self, oracle: Any, regulariser: Any, client: int, down: Array, memory: Array, up: Array
    ) -> None:
        """``down`` has h, w and, with a finite radius, the center; ``up`` gets h's increment."""
        h, v = down[0].copy(), np.empty(down.shape[1])
        w = down[1].astype(oracle.rows.y.dtype)
        center = down[down.shape[0] - 1]
        G = np.empty_like(w)
        work = workspace(oracle, client, w)
        for j in range(self.alpha.size):
            stochastic_gradient(oracle, client, j, w, work, G)
            step = DualStep(self.alpha[j], 0.5 * self.mu, self.c[j], self.A[j], self.radius)
            if j + 1 < self.alpha.size:
                dual_step(regulariser, step, h, G, center, v, w)
            else:
                ascend(step, h, G, w)
        subtract(up[0], h, down[0])


class DualAlgorithm(Algorithm):
    """What Fast-FedDA, C-FedDA and MC-FedDA share: the numbers μ, γ̃, a and E, and what they return.

    E is chosen only where all of them are open.
    """

    mu: float | None
    gamma: float | None
    local_steps: int | None
    a: float | None
    schedule: str
    output: str

    uploads: ClassVar[tuple[str, ...]] = ("dual_increment",)
    coordinatewise: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_positive(gamma=self.gamma)
        check_number("mu", self.mu, 0.0, strict=False)
        check_schedule(self.schedule, self.a, self.output)
        if self.local_steps is not None:
            object.__setattr__(self, "local_steps", whole_steps(self.local_steps))
        elif self.schedule != "polynomial" or not self.mu is self.gamma is self.a is None:
            object.__setattr__(self, "local_steps", LOCAL_STEPS)

    @cached_property
    def numbers(self) -> DualNumbers:
        """μ, γ̃ and a, all known."""
        if self.mu is None or self.gamma is None or self.a is None:
            raise ValueError(f"{self} has open hyper-parameters; simulate chooses them, or call resolve")
        return DualNumbers(self.mu, self.gamma, self.a)

    @cached_property
    def E(self) -> int:
        """The number of local steps, known."""
        if self.local_steps is None:
            raise ValueError(f"{self} has open hyper-parameters; simulate chooses them, or call resolve")
        return self.local_steps

    def gentler(self, chosen: Self) -> tuple[Self, str] | None:
        """With twice γ̃, the inverse of the step, where it was open; E was chosen with it and stays."""
        if self.gamma is not None or (self.schedule == "theory" and self.a is not None):
            return None
        gamma = 2.0 * chosen.numbers.gamma
        numbers = {"gamma": gamma, "local_steps": chosen.local_steps}
        again = dataclasses.replace(self, **numbers)  # type: ignore[type-var]
        return again, f"gamma = {gamma:.4g}"

    def chosen(
        self, curvature: Curvature, rounds: int | None, per_round: bool
    ) -> tuple[dict[str, Any], list[str]]:
        """μ, γ̃, a and E, chosen where they are open, for a schedule that counts rounds or local steps."""
        steps, said = self.local_steps, list[str]()
        if steps is None:
            steps, said = default_local_steps(curvature, rounds, per_round)
        horizon = Horizon.of(rounds, steps, per_round)
        numbers, more = dual_numbers(self.mu, self.gamma, self.a, self.schedule, curvature, horizon)
        return {**numbers._asdict(), "local_steps": steps}, said + more


def moved(average: Array, w: Array, share: float) -> Array:
    """The running average, moved towards the new iterate by its share of the weights."""
    return average + share * (w - average)


def dual_prox(
    problem: BoundProblem, h: Array, A: float, c: float, center: Array | None = None, radius: float = np.inf
) -> Array:
    """argmin ⟨w, h⟩ + (c/2)‖w‖² + A·h(w) over R(w − center) ≤ radius, at the server."""
    return problem.prox(h / -c, A / c, center, radius)
