"""MC-FedDA, Algorithm 3 of Bao, Crawshaw, Luo, Liu (ICML 2022)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

from unpooled.algorithms.base import State
from unpooled.algorithms.c_fedda import CFedDA
from unpooled.algorithms.curvature import Curvature
from unpooled.algorithms.dual_averaging import DualAlgorithm, DualAveraging
from unpooled.kernels.arrays import Arrays, Float
from unpooled.problem import BoundProblem

Stage = tuple[int, float, float]


@dataclass(frozen=True)
class MCFedDA(DualAlgorithm):
    """Multi-stage C-FedDA: a homotopy in λ, each stage a C-FedDA started from the last one's result.

        ŵ_{m+1} = C-FedDA(start and center ŵ_m, R_m rounds, radius ε_m, λ_m)

    Parameters
    ----------
    mu, gamma, local_steps, schedule, a : as for CFedDA, the same in every stage.
    stages : a list of (rounds, λ_m, radius).
    lambda0 : instead of ``stages``: λ_m = max(λ, λ_0/2^m) for m = 0 … ⌈log2(λ_0/λ)⌉, with stage lengths
        in proportion to 1/λ_m², which sum to the run's rounds. None takes 4λ, the paper's ratio.
    radius : with ``lambda0``, the first stage's radius; the later ones shrink with λ_m.
    """

    mu: float | None = None
    gamma: float | None = None
    local_steps: int | None = None
    stages: Sequence[Stage] | None = None
    lambda0: float | None = None
    radius: float = math.inf
    schedule: str = "polynomial"
    a: float | None = None
    output: str = field(default="last", init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stages is not None and self.lambda0 is not None:
            raise ValueError("give stages or lambda0, not both")
        if self.lambda0 is not None and not 0 < self.lambda0 < math.inf:
            raise ValueError(f"lambda0 must be a positive number, got {self.lambda0!r}")
        if self.stages is not None:
            object.__setattr__(
                self, "stages", tuple(_checked(stage, i) for i, stage in enumerate(self.stages))
            )
            if not self.stages:
                raise ValueError("stages is empty; leave it out to get them from lambda0")

    def planned_rounds(self) -> int | None:
        """The stages' rounds together."""
        return None if self.stages is None else sum(rounds for rounds, _, _ in self.stages)

    def resolve(self, curvature: Curvature, rounds: int | None) -> tuple[Self, list[str]]:
        """Choose the stages, mu, gamma, a and local_steps where they are open."""
        stages, said = self.stages, []
        if stages is None:
            if rounds is None:
                raise ValueError("MCFedDA needs rounds, or stages, which say how long each one is")
            lam = float(curvature.problem.penalty.lam)
            lambda0 = self.lambda0 if self.lambda0 is not None else 4.0 * lam
            stages = halving_stages(lambda0, lam, rounds, self.radius)
            said.append(
                "stages (rounds, λ, radius): " + ", ".join(f"({r}, {s:g}, {e:g})" for r, s, e in stages)
            )
        last = stages[-1][1]
        if getattr(curvature.problem.penalty, "lam", last) != last:
            said.append(
                f"the last stage has λ = {last:g}, not the problem's {curvature.problem.penalty.lam:g}"
            )
        longest = max(length for length, _, _ in stages)
        numbers, chosen = self.chosen(curvature, longest, per_round=True)
        return dataclasses.replace(self, stages=stages, lambda0=None, **numbers), said + chosen

    @cached_property
    def _stages(self) -> list[tuple[int, float, CFedDA]]:
        """(first round, λ_m, C-FedDA) of every stage."""
        stages, first = [], 0
        mu, gamma, a = self.numbers
        for rounds, lam, radius in self.stages or ():
            inner = CFedDA(mu, gamma, self.local_steps, radius, self.schedule, a)
            stages.append((first, lam, inner))
            first += rounds
        return stages

    def _at(self, round: int) -> tuple[int, float, CFedDA]:
        """The stage that round belongs to."""
        return next(stage for stage in reversed(self._stages) if stage[0] <= round)

    def problem_at(self, problem: BoundProblem, round: int) -> BoundProblem:
        """The problem with the stage's λ_m and its constraint."""
        _, lam, stage = self._at(round)
        return stage.problem_at(problem.with_lam(lam), round)

    def init(self, problem: BoundProblem, w0: Float) -> State:
        """The first stage's start."""
        return self._stages[0][2].init(problem, w0)

    def broadcast(self, problem: BoundProblem, state: State) -> Arrays:
        """As the stage's C-FedDA."""
        return self._at(state.round)[2].broadcast(problem, state)

    def unpack(self, problem: BoundProblem, down: Arrays, round: int) -> Arrays:
        """As the stage's C-FedDA, whose rounds count from the stage's first."""
        first, _, stage = self._at(round)
        return stage.unpack(problem, down, round - first)

    def plan(self, problem: BoundProblem, round: int) -> DualAveraging:
        """As the stage's C-FedDA."""
        first, _, stage = self._at(round)
        return stage.plan(problem, round - first)

    def server_update(self, problem: BoundProblem, state: State, mean: Arrays, participation: float) -> State:
        """As the stage's C-FedDA; after its last round the next stage starts from the last iterate."""
        first, _, stage = self._at(state.round)
        inner = State(state.round - first, state.arrays)
        arrays = stage.server_update(problem, inner, mean, participation).arrays
        r = state.round + 1
        if r != self.planned_rounds() and self._at(r)[0] == r:
            arrays = self._at(r)[2].init(problem, arrays["w"]).arrays
        return State(r, arrays)

    def estimate(self, problem: BoundProblem, state: State) -> Float:
        """The last server iterate."""
        return state.arrays["w"]


def halving_stages(lambda0: float, lam: float, rounds: int, radius: float = math.inf) -> tuple[Stage, ...]:
    """λ_m = max(λ, λ_0/2^m), m = 0 … ⌈log2(λ_0/λ)⌉; lengths ∝ 1/λ_m² summing to ``rounds``; ε_m ∝ λ_m."""
    if not lam > 0:
        raise ValueError("MCFedDA's λ rule needs a penalty with lam > 0; give stages instead")
    if lambda0 < lam:
        raise ValueError(f"lambda0 = {lambda0:g} must not be below the problem's lam = {lam:g}")
    count = math.ceil(math.log2(lambda0 / lam) - 1e-12) + 1
    lams = [max(lam, lambda0 / 2**m) for m in range(count)]
    if rounds < count:
        raise ValueError(
            f"{count} stages from lambda0 = {lambda0:g} down to {lam:g} need as many rounds, got {rounds}"
        )
    weights = [lam**2 / value**2 for value in lams]
    lengths = [max(1, math.floor(rounds * weight / sum(weights))) for weight in weights]
    lengths[-1] += rounds - sum(lengths)
    if lengths[-1] < max(lengths):  # the last paid for many short stages that were lifted to one round
        lengths = [1 + math.floor((rounds - count) * weight / sum(weights)) for weight in weights]
        lengths[-1] += rounds - sum(lengths)
    return tuple((n, value, radius * (value / lambda0)) for n, value in zip(lengths, lams, strict=True))


def _checked(stage: Sequence[float], index: int) -> Stage:
    """A stage as (int, float, float), refused with its number where it is not one."""
    if len(stage) != 3:
        raise ValueError(f"stage {index} must be (rounds, lam, radius), got {stage!r}")
    rounds, lam, radius = stage
    if int(rounds) != rounds or rounds < 1 or not 0 <= lam < math.inf or not radius >= 0:
        raise ValueError(f"stage {index} needs rounds ≥ 1, lam ≥ 0 and radius ≥ 0, got {tuple(stage)!r}")
    return int(rounds), float(lam), float(radius)
