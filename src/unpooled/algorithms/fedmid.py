"""FedMiD, federated mirror descent of Yuan, Zaheer, Reddi (ICML 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unpooled.algorithms.base import State
from unpooled.algorithms.descent import Descent, DescentAlgorithm
from unpooled.kernels.arrays import Arrays
from unpooled.problem import BoundProblem

SERVER_PROXES = ("round", "step")


@dataclass(frozen=True)
class FedMiD(DescentAlgorithm):
    """Federated Mirror Descent with the Euclidean mirror: proximal steps at clients and server.

        w_k ← prox_{ηh}(w_k − η∇f(w_k; ξ))   E times
        w ← prox_{sh}(w + η_s · mean(w_k − w))

    Averaging sparse points leaves a dense one (the curse of primal averaging); s decides how much of it
    the server's prox undoes.

    Parameters
    ----------
    step : η; None takes the inverse of ¾ of the largest expected smoothness.
    local_steps : E.
    server_step : η_s.
    server_prox : "round", s = η_sηE as in Yuan et al.; "step", s = η_sη as in the experiments of Bao et al.
    """

    step: float | None = None
    local_steps: int = 10
    server_step: float = 1.0
    server_prox: str = "round"

    uploads: ClassVar[tuple[str, ...]] = ("increment",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.server_prox not in SERVER_PROXES:
            raise ValueError(
                f"server_prox must be one of {', '.join(SERVER_PROXES)}, got {self.server_prox!r}"
            )

    def plan(self, problem: BoundProblem, round: int) -> Descent:
        """Proximal steps."""
        return Descent(self._step, self.local_steps, True, False)

    def server_update(self, problem: BoundProblem, state: State, mean: Arrays, participation: float) -> State:
        """A proximal step along the mean increment."""
        w = state.arrays["w"] + self.server_step * mean["increment"]
        s = self.server_step * self._step * (self.local_steps if self.server_prox == "round" else 1)
        return State(state.round + 1, {"w": problem.prox(w, s)})
