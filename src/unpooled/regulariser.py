"""A penalty as local loops see it: with the unpenalised intercepts behind it and the ball around it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from unpooled.arrays import Array
from unpooled.kernel import kernel, method
from unpooled.penalties.base import constrained_prox as penalty_constrained_prox
from unpooled.penalties.base import prox as penalty_prox

prox = method("prox")
subgradient = method("subgradient")

ENVELOPE = 1e-5  # (w − prox_{sh}(w))/s with s this small is a subgradient to about 1e-11


class Domain(NamedTuple):
    """The first ``n_penalised`` entries of a flat vector carry the penalty, inside a ball."""

    n_penalised: int
    ball: float


class Regulariser(NamedTuple):
    """h on the coefficients, nothing on the intercepts behind them."""

    penalty: Any
    domain: Domain

    @kernel
    def prox(self, v: Array, step: float, center: Array, radius: float, out: Array) -> None:
        """out ← argmin ½‖w − v‖² + step·h(w), R(w − center) ≤ radius, ‖w‖₂ ≤ ball; v is used as scratch."""
        n, ball = self.domain.n_penalised, self.domain.ball
        for j in range(n, v.size):
            out[j] = v[j]
        if radius == np.inf and ball == np.inf:
            penalty_prox(self.penalty, v[:n], step, out[:n])
        else:
            penalty_constrained_prox(self.penalty, v[:n], step, center[:n], radius, ball, out[:n])

    @kernel
    def subgradient(self, w: Array, out: Array) -> None:
        """out ← an element of ∂h(w), as the gradient of a very tight Moreau envelope."""
        n = self.domain.n_penalised
        penalty_prox(self.penalty, w[:n].astype(np.float64), ENVELOPE, out[:n])
        for j in range(n):
            out[j] = (w[j] - out[j]) / ENVELOPE
        for j in range(n, w.size):
            out[j] = 0.0
