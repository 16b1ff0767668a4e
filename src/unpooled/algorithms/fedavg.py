"""FedAvg of McMahan et al. (AISTATS 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unpooled.algorithms.base import State
from unpooled.algorithms.descent import Descent, DescentAlgorithm
from unpooled.kernels.arrays import Arrays
from unpooled.problem import BoundProblem


@dataclass(frozen=True)
class FedAvg(DescentAlgorithm):
    """Federated Averaging: E local gradient steps, then w ← w + η_s · mean increment.

    Made for smooth problems; a penalty enters through a subgradient, so iterates are never sparse.
    Where clients differ its fixed point is not the optimum, unless E = 1.

    Parameters
    ----------
    step : η; None takes the inverse of ¾ of the largest expected smoothness.
    local_steps : E.
    server_step : η_s.
    """

    step: float | None = None
    local_steps: int = 10
    server_step: float = 1.0

    uploads: ClassVar[tuple[str, ...]] = ("increment",)

    def plan(self, problem: BoundProblem, round: int) -> Descent:
        """Plain steps."""
        return Descent(self._step, self.local_steps, False, False)

    def server_update(self, problem: BoundProblem, state: State, mean: Arrays, participation: float) -> State:
        """w += η_s · mean increment."""
        return State(state.round + 1, {"w": state.arrays["w"] + self.server_step * mean["increment"]})
