"""Defaults that need no tuning, for what a user leaves open."""

from __future__ import annotations

import math
from typing import NamedTuple

from unpooled.curvature import LANCZOS_STEPS, Curvature

SAFETY = 0.75  # of the worst client's expected smoothness; a run that diverges doubles γ̃ and starts again


class DualNumbers(NamedTuple):
    """Strong convexity, inverse first step, and the schedule's a."""

    mu: float
    gamma: float
    a: float


def default_gamma(curvature: Curvature) -> float:
    """γ̃ = ¾ max_k 𝓛_k."""
    gamma = SAFETY * curvature.smoothness
    if not gamma > 0:
        raise ValueError("the data has no curvature at all (is X zero?): give gamma (or step)")
    return gamma


def dual_numbers(
    mu: float | None,
    gamma: float | None,
    a: float | None,
    schedule: str,
    curvature: Curvature,
    horizon: int,
    steps_per_unit: int,
) -> tuple[DualNumbers, list[str]]:
    """Fill in what is None; ``horizon`` is the length of the schedule, in units of so many local steps."""
    said: list[str] = []
    if schedule == "theory":
        return _theory(mu, gamma, a, curvature)
    if gamma is None:
        gamma = default_gamma(curvature) / steps_per_unit
        share = f" / {steps_per_unit} local steps" if steps_per_unit > 1 else ""
        said.append(f"gamma = {gamma:.4g}: {SAFETY} × the largest expected smoothness of a client{share}")
    if mu is None:
        mu = curvature.strong_convexity
        if mu > 1e-6 * curvature.smoothness:
            said.append(f"mu = {mu:.4g}: {_lanczos(curvature)}")
        else:
            mu = 4.0 * gamma / max(horizon / 4.0, 1.0)
            said.append(f"mu = {mu:.4g}: the data shows no strong convexity; a is a quarter of the run")
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


def _lanczos(curvature: Curvature) -> str:
    share = "the" if curvature.problem.loss.is_quadratic else "a tenth of the"
    return f"{share} smallest of {LANCZOS_STEPS} Lanczos values, one extra round each"


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
    step = 1.0 / default_gamma(curvature)
    return step, [f"step = {step:.4g}: 1 / ({SAFETY} × the largest expected smoothness of a client)"]
