"""How long the steps of a run should stay long, and what is expected to keep it from the optimum.

Of a step η_T at the end and S = Σ η_t in all, this part of the first gap is expected to be left:

    steps    Σ_i ρ_i θ_i^p e^{−2cθ_i S} / Σ_i ρ_i θ_i^p    gradient flow on the pooled spectrum (θ, ρ)
    drift    D (x/(1+x))²,  x = ½(E−1)η_T L                local steps towards the clients' own optima
    noise    N η_T L                                       where clients or rows are sampled

The longer the steps stay long, the smaller is the first term and the larger are the other two; a is where
their sum is least. p says how much of the first gap lies where the curvature is large (1: as for coefficients
of any direction, 2: more), c how much of its bound the curvature of the loss has (1 for quadratics). Nobody
knows p, c, D and N before a run: those below come near the best a on real data sets whose sites differ.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np

from unpooled.algorithms.curvature import Curvature
from unpooled.algorithms.schedule import alpha, total

DRIFT, NOISE = 0.01, 0.02  # D and N
LARGE, CURVED = 1.5, 0.4  # p and c
LEAST_A = 4.0
NEGLIGIBLE = 1e-8  # a part of the first gap that nobody asks about


class Horizon(NamedTuple):
    """The length of a schedule in units of ``steps`` local steps, of which a round has ``local_steps``.

    ``length`` is None where nobody knows how many rounds there will be.
    """

    length: int | None
    steps: int
    local_steps: int

    @classmethod
    def of(cls, rounds: int | None, local_steps: int, per_round: bool) -> Self:
        """A schedule of so many rounds that counts rounds, or local steps."""
        steps = local_steps if per_round else 1
        return cls(None if rounds is None else rounds * local_steps // steps, steps, local_steps)


class Left(NamedTuple):
    """The part of the first gap that is expected to be left, by where it comes from."""

    steps: float
    drift: float
    noise: float


def balanced(curvature: Curvature, gamma: float, horizon: Horizon) -> float:
    """The a, of ∞ and the horizon times powers of two, at which least is expected to be left."""
    assert horizon.length is not None
    halves = [horizon.length * 2.0**-k for k in range(-2, 40)]
    candidates = [math.inf, *(a for a in halves if a >= LEAST_A)]
    return min(candidates, key=lambda a: sum(left(curvature, gamma, a, horizon)))


def left(curvature: Curvature, gamma: float, a: float, horizon: Horizon) -> Left:
    """What is expected to be left after the whole horizon, with μ = 4γ̃/a."""
    assert horizon.length is not None
    theta, rho = curvature.spectrum
    way, last = _lengths(a, horizon.length)
    S, step = way / gamma, last / (gamma * horizon.steps)
    gap = rho * theta**LARGE
    c = 1.0 if curvature.problem.loss.is_quadratic else CURVED
    steps = float(np.sum(gap * np.exp(-2.0 * c * theta * S)) / max(np.sum(gap), np.finfo(float).tiny))
    x = 0.5 * (horizon.local_steps - 1) * step * curvature.largest
    noise = NOISE * step * curvature.largest if curvature.is_sampled else 0.0
    return Left(steps, DRIFT * (x / (1.0 + x)) ** 2, noise)


def _lengths(a: float, length: int) -> tuple[float, float]:
    """Σ_t γ̃η_t and the last γ̃η_t, where γ̃η_t = α_t/(2A_t/a + 1): the step in units of the first one."""
    if math.isinf(a):
        return float(length), 1.0
    t = np.append(0.0, np.geomspace(1.0, length, 2000))
    eta = alpha(t, a) / (2.0 * total(t, a) / a + 1.0)
    return float(np.trapezoid(eta, t)), float(eta[-1])


def limits(curvature: Curvature, gamma: float, a: float, horizon: Horizon, alone: float | None) -> list[str]:
    """The term that is expected to keep the run from the optimum, and what helps against it.

    ``alone`` is the γ̃ that one local step a round would have, None where nobody measured it.
    """
    expected = left(curvature, gamma, a, horizon)
    if sum(expected) < NEGLIGIBLE:
        return []
    E = horizon.local_steps
    if left(curvature, gamma, math.inf, horizon).steps > 0.5 * sum(expected):  # however long they stay long
        longer = gamma * horizon.steps / alone if alone is not None else 1.0
        if E > 1 and longer > E:
            worst = float(np.max(curvature.clients[0]))
            return [
                f"short steps are expected to limit this run: one client has curvature {worst:.3g}, all "
                f"together have {curvature.largest:.3g}; local_steps=1 allows steps {longer:.0f} times as "
                f"long, which go further than {E} local steps; or use solve"
            ]
        return [
            "the number of steps is expected to limit this run: more rounds, better scaled features, or solve"
        ]
    if expected.drift >= expected.noise:
        return [
            f"the drift of {E} local steps between clients that differ is expected to limit this run: fewer "
            "local_steps, Scaffold, or solve"
        ]
    return [
        "the noise of sampled clients or rows is expected to limit this run: a larger cohort or batch_size, "
        "or more rounds"
    ]
