"""SCAFFOLD of Karimireddy et al. (ICML 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unpooled.algorithms.base import State
from unpooled.algorithms.descent import Descent, DescentAlgorithm
from unpooled.kernels.arrays import Arrays, Float
from unpooled.problem import BoundProblem


@dataclass(frozen=True)
class Scaffold(DescentAlgorithm):
    """Stochastic Controlled Averaging: FedAvg with control variates against client drift.

        w_k ← w_k − η(∇f(w_k; ξ) − c_k + c)   E times
        c_k⁺ = c_k − c + (w − w_k)/(ηE)       kept by the client
        w += η_s · mean(w_k − w),   c += Σ_k π_k (c_k⁺ − c_k)

    A control c that is a sum of changes is that of the c_k only if every change arrives as it was sent. Where
    uploads are not simply averaged (medians, clipping, noise), let clients send c_k⁺ − c:
    c += (Σ_k π_k) · mean(c_k⁺ − c). With all clients this is the same; in cohorts c forgets what went wrong
    in earlier rounds, but also those who are absent, and takes away less of the drift.

    For smooth problems it converges to the optimum however much the clients differ; a penalty enters
    through a subgradient, as in FedAvg.

    Parameters
    ----------
    step : η; None takes the inverse of ¾ of the largest expected smoothness.
    local_steps : E.
    server_step : η_s.
    control : "change" sends c_k⁺ − c_k, the paper's; "value" c_k⁺ − c.
    """

    step: float | None = None
    local_steps: int = 10
    server_step: float = 1.0
    control: str = "change"

    uploads: ClassVar[tuple[str, ...]] = ("increment", "control_increment")
    memory: ClassVar[tuple[str, ...]] = ("control",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.control not in ("change", "value"):
            raise ValueError(f"control must be 'change' or 'value', got {self.control!r}")

    def check_not_averaged(self) -> None:
        """Changes of controls must be averaged."""
        if self.control == "change":
            raise ValueError(
                "Scaffold's server adds up changes of the clients' controls, which must be averaged as they "
                "are; with medians, trimmed means or privacy take Scaffold(control='value')"
            )

    def init(self, problem: BoundProblem, w0: Float) -> State:
        """The start, and no control yet."""
        return State(0, {**super().init(problem, w0).arrays, "control": np.zeros_like(w0)})

    def plan(self, problem: BoundProblem, round: int) -> Descent:
        """Controlled steps."""
        return Descent(self._step, self.local_steps, False, True, self.control == "value")

    def server_update(self, problem: BoundProblem, state: State, mean: Arrays, participation: float) -> State:
        """Both increments; c stays Σ_k π_k c_k under partial participation."""
        w = state.arrays["w"] + self.server_step * mean["increment"]
        control = state.arrays["control"] + participation * mean["control_increment"]
        return State(state.round + 1, {"w": w, "control": control})
