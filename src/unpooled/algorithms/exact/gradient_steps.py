"""What the solvers share that are sent gradients only: coordinates, the step, and when to shorten it.

With an intercept the server works in (w, b + x̄·w): the features are centred without being touched, so that
large means do not slow the steps down. The first step is 1/L for L a tenth of Σ_k π_k λ_max,k, which clients
send with their first answer; as a bound it is loose where they differ. Where the answers show more curvature
than L, L grows.
"""

from __future__ import annotations

import numpy as np

from unpooled.algorithms.base import State
from unpooled.algorithms.exact.base import opened, opening
from unpooled.algorithms.exact.oracle import NONE
from unpooled.arrays import Arrays, Float
from unpooled.problem import BoundProblem

OPTIMISM = 0.1
GROWTH, MOST = 1.2, 4.0  # L grows to so many times the curvature that was seen, and at most so fast


def first_question(problem: BoundProblem, state: State) -> Arrays:
    """The opening, and a bound of the curvature."""
    return opening(problem, state.arrays["start"], NONE, NONE) | {"curvature": NONE}


def first_facts(problem: BoundProblem, state: State, total: Arrays) -> Arrays:
    """The opening's facts, and 1/step."""
    L = OPTIMISM * float(total.get("curvature", 1.0 / OPTIMISM))
    return opened(problem, state, total) | {"L": np.array(L if L > 0.0 else 1.0)}


def inner(problem: BoundProblem, a: Arrays, w: Float) -> Float:
    """A flat vector of the problem in the server's coordinates."""
    return _shifted(problem, a, w, 1.0)


def outer(problem: BoundProblem, a: Arrays, v: Float) -> Float:
    """And back."""
    return _shifted(problem, a, v, -1.0)


def _shifted(problem: BoundProblem, a: Arrays, v: Float, sign: float) -> Float:
    n, outputs = problem.layout.n_coefficients, problem.layout.n_outputs
    v = v.copy()
    if v.size > n:
        v[n:] += sign * (v[:n].reshape(outputs, -1) @ a["mean_x"])
    return v


def inner_gradient(problem: BoundProblem, a: Arrays, gradient: Float) -> Float:
    """The gradient with respect to the server's coordinates."""
    n = problem.layout.n_coefficients
    g = gradient.copy()
    if g.size > n:
        g[:n] -= np.multiply.outer(g[n:], a["mean_x"]).ravel()
    return g


def grown(L: float, seen: float) -> float:
    """L after more curvature than L was seen; far off the path it can be absurd."""
    return min(max(L, GROWTH * seen), MOST * L)


def seen_curvature(step: Float, old: Arrays, new: Arrays) -> float:
    """2(f(old) − f(new) − ⟨∇f(new), old − new⟩)/‖old − new‖², step = new − old; 0 where it is rounding."""
    square = float(step @ step)
    difference = float(old["loss"]) - float(new["loss"])
    bregman = difference + float(new["inner_gradient"] @ step)
    if square == 0.0 or bregman <= 1e-10 * (abs(float(old["loss"])) + abs(float(new["loss"]))):
        return 0.0
    return 2.0 * bregman / square
