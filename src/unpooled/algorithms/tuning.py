"""Defaults that need no tuning, for what a user leaves open.

γ̃, the inverse of the first step, is ¾ of the expected smoothness: that of the worst client where clients take
several steps of their own, for one that overshoots does so E times; that of the round's mean gradient where
they take one, for then only the mean moves. Where all clients send full gradients, one local step has no
drift: it is taken unless ten are expected to come further. ``balance`` chooses a.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from unpooled.algorithms.balance import Horizon, balanced, left, limits
from unpooled.algorithms.curvature import Curvature

SAFETY = 0.75  # of the expected smoothness; a run that diverges doubles γ̃ and starts again
LOCAL_STEPS = 10


class DualNumbers(NamedTuple):
    """μ, γ̃ and a of a dual-averaging method."""

    mu: float
    gamma: float
    a: float


def default_local_steps(curvature: Curvature, rounds: int | None, per_round: bool) -> tuple[int, list[str]]:
    """E: 10, or 1 in a run without sampling that is expected to come further so."""
    if rounds is None or curvature.is_sampled:
        return LOCAL_STEPS, []
    gammas, ends = {}, {}
    for E in (1, LOCAL_STEPS):
        horizon = Horizon.of(rounds, E, per_round)
        gammas[E] = default_gamma(curvature, E)[0]
        gamma = gammas[E] / horizon.steps
        ends[E] = sum(left(curvature, gamma, balanced(curvature, gamma, horizon), horizon))
    longer = gammas[LOCAL_STEPS] / gammas[1]
    if ends[1] <= ends[LOCAL_STEPS]:
        return 1, [
            f"local_steps = 1: with full gradients of all clients one step has no drift, and may be "
            f"{longer:.3g} times as long as each of {LOCAL_STEPS}"
        ]
    return LOCAL_STEPS, [f"local_steps = {LOCAL_STEPS}: one {longer:.3g} times as long would not come as far"]


def default_gamma(curvature: Curvature, local_steps: int = 0) -> tuple[float, str]:
    """γ̃, and of what it is ¾."""
    alone = local_steps == 1
    gamma = SAFETY * (curvature.round_smoothness if alone else curvature.smoothness)
    if not gamma > 0:
        raise ValueError("the data has no curvature at all (is X zero?): give gamma (or step)")
    whose = "expected smoothness of a round's mean gradient"
    return gamma, f"{SAFETY} × the {whose if alone else 'largest expected smoothness of a client'}"


def dual_numbers(
    mu: float | None,
    gamma: float | None,
    a: float | None,
    schedule: str,
    curvature: Curvature,
    horizon: Horizon,
) -> tuple[DualNumbers, list[str]]:
    """Fill in what is None."""
    said: list[str] = []
    is_chosen = gamma is None
    if schedule == "theory":
        return _theory(mu, gamma, a, curvature)
    if gamma is None:
        gamma, whose = default_gamma(curvature, 0 if schedule == "measured" else horizon.local_steps)
        gamma /= horizon.steps
        share = f" / {horizon.steps} local steps" if horizon.steps > 1 else ""
        said.append(f"gamma = {gamma:.4g}: {whose}{share}")
    if mu is None and a is None and schedule == "polynomial" and horizon.length is not None:
        a = balanced(curvature, gamma, horizon)
        mu = 4.0 * gamma / a
        said.append(_shape(a, mu, horizon, curvature.is_sampled))
        alone = default_gamma(curvature, 1)[0] if is_chosen else None  # which is no reason to measure
        said += limits(curvature, gamma, a, horizon, alone)
        return DualNumbers(mu, gamma, a), said
    if mu is None:
        mu = curvature.strong_convexity
        if mu > 1e-6 * curvature.smoothness:
            said.append(f"mu = {mu:.4g}: {_lanczos(curvature)}")
        else:
            mu, why = _without_strong_convexity(gamma, a, horizon)
            said.append(f"mu = {mu:.4g}: {why}, for the data shows no strong convexity")
    if schedule == "uniform":
        return DualNumbers(mu, gamma, math.inf), said
    if a is None:
        a = 4.0 * gamma / mu if mu > 0 else math.inf
        said.append(f"a = {a:.4g}: 4 gamma / mu")
    elif mu > 0 and a < 4.0 * gamma / mu:
        said.append(
            f"a = {a:.4g} is below 4 gamma / mu = {4 * gamma / mu:.4g}: steps grow before they shrink"
        )
    return DualNumbers(mu, gamma, a), said


def _without_strong_convexity(gamma: float, a: float | None, horizon: Horizon) -> tuple[float, str]:
    """The μ with which steps shrink after a, or else a quarter of the run, and where it comes from."""
    if a is not None:
        return 4.0 * gamma / a, "4 gamma / a"
    if horizon.length is None:
        return 0.0, "steps do not shrink"
    quarter = max(horizon.length / 4.0, 1.0)
    return 4.0 * gamma / quarter, f"4 gamma / {quarter:.4g}, a quarter of the run"


def _shape(a: float, mu: float, horizon: Horizon, is_sampled: bool) -> str:
    """How the steps shrink, and why so."""
    if math.isinf(a):
        return "a = inf, mu = 0: all steps are as long as the first, for the run needs their whole length"
    unit = "local steps" if horizon.steps == 1 else "rounds"
    against = "noise" if is_sampled else "drift"
    return (
        f"a = {a:.4g}, mu = 4 gamma / a = {mu:.4g}: steps shrink after about {a:.4g} {unit}, to come far and "
        f"yet end with little {against}"
    )


def _lanczos(curvature: Curvature) -> str:
    share = "the" if curvature.problem.loss.is_quadratic else "a tenth of the"
    return f"{share} smallest of {len(curvature.spectrum[0])} Lanczos values, one extra round each"


def _theory(
    mu: float | None, gamma: float | None, a: float | None, curvature: Curvature
) -> tuple[DualNumbers, list[str]]:
    """a = 4L/μ and γ̃ = 2μa (the paper's γ = 2μa³ in the scale-free form)."""
    said = []
    if mu is None:
        mu = curvature.strong_convexity
        said.append(f"mu = {mu:.4g}: {_lanczos(curvature)}")
    if not mu > 0:
        raise ValueError("schedule='theory' needs strong convexity, mu > 0; schedule='polynomial' does not")
    if a is None:
        a = gamma / (2.0 * mu) if gamma is not None else 4.0 * curvature.smoothness / mu
        said.append(f"a = {a:.4g}: {'gamma / (2 mu)' if gamma is not None else '4 L / mu'}")
    if gamma is None:
        gamma = 2.0 * mu * a
        said.append(f"gamma = {gamma:.4g}: 2 mu a")
    if not math.isclose(gamma, 2.0 * mu * a, rel_tol=1e-6):
        raise ValueError(
            f"schedule='theory' means gamma = 2 mu a = {2 * mu * a:.6g}, got gamma = {gamma:.6g}; "
            "leave one of gamma and a out, or use schedule='polynomial'"
        )
    return DualNumbers(mu, gamma, a), said


def default_step(step: float | None, curvature: Curvature) -> tuple[float, list[str]]:
    """The step, 1/γ̃ where it is open."""
    if step is not None:
        return step, []
    gamma, whose = default_gamma(curvature)
    return 1.0 / gamma, [f"step = {1.0 / gamma:.4g}: 1 / ({whose})"]
