"""A penalty as local loops see it: with the unpenalised intercepts behind it and the ball around it."""

from __future__ import annotations

from typing import Any, NamedTuple

from unpooled.arrays import Array
from unpooled.kernel import kernel, method
from unpooled.penalties.base import constrained_prox as penalty_constrained_prox
from unpooled.penalties.base import prox as penalty_prox
from unpooled.penalties.base import subgradient as penalty_subgradient

prox = method("prox")
domain_prox = method("prox")
subgradient = method("subgradient")


class Free(NamedTuple):
    """The first ``n_penalised`` entries of a flat vector carry the penalty; there is no constraint."""

    n_penalised: int

    @kernel
    def prox(self, penalty: Any, v: Array, step: float, center: Array, radius: float, out: Array) -> None:
        """out ← argmin ½‖w − v‖² + step·h(w); v is used as scratch."""
        penalty_prox(penalty, v[: self.n_penalised], step, out[: self.n_penalised])


class Constrained(NamedTuple):
    """The same inside a ball, and within a radius of a center."""

    n_penalised: int
    ball: float

    @kernel
    def prox(self, penalty: Any, v: Array, step: float, center: Array, radius: float, out: Array) -> None:
        """out ← argmin ½‖w − v‖² + step·h(w), R(w − center) ≤ radius, ‖w‖₂ ≤ ball; v is used as scratch."""
        n = self.n_penalised
        penalty_constrained_prox(penalty, v[:n], step, center[:n], radius, self.ball, out[:n])


class Regulariser(NamedTuple):
    """h on the coefficients, nothing on the intercepts behind them."""

    penalty: Any
    domain: Any

    @kernel
    def prox(self, v: Array, step: float, center: Array, radius: float, out: Array) -> None:
        """The domain's prox; intercepts go through it unchanged."""
        for j in range(self.domain.n_penalised, v.size):
            out[j] = v[j]
        domain_prox(self.domain, self.penalty, v, step, center, radius, out)

    @kernel
    def subgradient(self, w: Array, out: Array) -> None:
        """out ← an element of ∂h(w)."""
        n = self.domain.n_penalised
        for j in range(n, w.size):
            out[j] = 0.0
        penalty_subgradient(self.penalty, w[:n], out[:n])
