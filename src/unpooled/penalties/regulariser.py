"""A penalty as local loops see it: with the unpenalised intercepts behind it and the ball around it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel, method
from unpooled.penalties.base import constrained_prox as penalty_constrained_prox
from unpooled.penalties.base import entry_at
from unpooled.penalties.base import prox as penalty_prox
from unpooled.penalties.base import subgradient as penalty_subgradient

prox = method("prox")
domain_prox = method("prox")
subgradient = method("subgradient")
dual_step = method("dual_step", borrows=True)


class DualStep(NamedTuple):
    """The numbers of one step of dual averaging,

    h ← h + α(G − (μ/2) w),    w ← argmin ⟨w, h⟩ + (c/2)‖w‖² + A h(w)  over R(w − center) ≤ radius.
    """

    alpha: float
    half_mu: float
    c: float
    A: float
    radius: float


@kernel
def in_precision(step: DualStep, h: Array) -> tuple[Any, Any, Any, Any]:
    """α, μ/2, −1/c and A/c in the precision of h: one float64 would make all of a float32 loop float64."""
    number = h.dtype.type
    return number(step.alpha), number(step.half_mu), number(-1.0 / step.c), number(step.A / step.c)


@kernel
def ascend(step: DualStep, h: Array, G: Array, w: Array) -> None:
    """h ← h + α(G − (μ/2)w)."""
    alpha, half_mu, _, _ = in_precision(step, h)
    for q in range(h.size):
        h[q] += alpha * (G[q] - half_mu * w[q])


@kernel
def two_passes(
    domain: Any, penalty: Any, step: DualStep, h: Array, G: Array, center: Array, v: Array, w: Array
) -> None:
    """The dual step of any penalty: h and v = −h/c in one pass over memory, the prox of v in others."""
    alpha, half_mu, scale, _ = in_precision(step, h)
    for q in range(h.size):
        h[q] += alpha * (G[q] - half_mu * w[q])
        v[q] = scale * h[q]
    for q in range(domain.n_penalised, v.size):
        w[q] = v[q]
    domain_prox(domain, penalty, v, step.A / step.c, center, step.radius, w)


domain_dual_step = method("dual_step", default=two_passes, borrows=True)


class Free(NamedTuple):
    """The first ``n_penalised`` entries of a flat vector carry the penalty; there is no constraint."""

    n_penalised: int

    @kernel
    def prox(self, penalty: Any, v: Array, step: float, center: Array, radius: float, out: Array) -> None:
        """out ← argmin ½‖w − v‖² + step·h(w); v is used as scratch."""
        penalty_prox(penalty, v[: self.n_penalised], step, out[: self.n_penalised])


class Entrywise(NamedTuple):
    """``Free`` for a penalty whose record has the kernel ``entry`` or ``entry_at``: the prox of a number."""

    n_penalised: int

    @kernel
    def prox(self, penalty: Any, v: Array, step: float, center: Array, radius: float, out: Array) -> None:
        """out ← argmin ½‖w − v‖² + step·h(w)."""
        penalty_prox(penalty, v[: self.n_penalised], step, out[: self.n_penalised])

    @kernel
    def dual_step(
        self, penalty: Any, step: DualStep, h: Array, G: Array, center: Array, v: Array, w: Array
    ) -> None:
        """The dual step in one pass over memory, which is what bounds its speed."""
        alpha, half_mu, scale, prox_step = in_precision(step, h)
        for q in range(self.n_penalised):
            h[q] += alpha * (G[q] - half_mu * w[q])
            w[q] = entry_at(penalty, q, scale * h[q], prox_step)
        for q in range(self.n_penalised, h.size):
            h[q] += alpha * (G[q] - half_mu * w[q])
            w[q] = scale * h[q]


class Constrained(NamedTuple):
    """The same inside a ball, and within a radius of a center."""

    n_penalised: int
    ball: float

    @kernel
    def prox(self, penalty: Any, v: Array, step: float, center: Array, radius: float, out: Array) -> None:
        """out ← argmin ½‖w − v‖² + step·h(w), R(w − center) ≤ radius, ‖w‖₂ ≤ ball; v is used as scratch."""
        n = self.n_penalised
        own = center[:n].astype(np.float64)
        penalty_constrained_prox(penalty, v[:n], step, own, radius, self.ball, out[:n])


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
    def dual_step(self, step: DualStep, h: Array, G: Array, center: Array, v: Array, w: Array) -> None:
        """See ``DualStep``; v is scratch."""
        domain_dual_step(self.domain, self.penalty, step, h, G, center, v, w)

    @kernel
    def subgradient(self, w: Array, out: Array) -> None:
        """out ← an element of ∂h(w)."""
        n = self.domain.n_penalised
        for j in range(n, w.size):
            out[j] = 0.0
        penalty_subgradient(self.penalty, w[:n], out[:n])
