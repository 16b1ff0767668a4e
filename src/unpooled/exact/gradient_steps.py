"""What the solvers share that are sent gradients only: coordinates, the step, and when to shorten it.

The server works in v = s·w, and with an intercept in (s·w, τ(b + x̄·w)): columns are centred without being
touched, so that large means do not slow the steps down. Where the penalty is separable, s_j² is the curvature
in column j, which clients send with their first answer, or its mean over a group, and τ² that of the
intercept: a column in other units changes nothing. Elsewhere s = 1, and τ ≥ 1 keeps the intercept's curvature
to that of the features. The first step is 1/L for L a tenth of Σ_k π_k λ_max,k, which clients send too; as a
bound it is loose where they differ. Where the answers show more curvature than L, L grows.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from unpooled.algorithms.base import State
from unpooled.exact.base import ExactSolver, opened, opening, shift
from unpooled.exact.oracle import NONE
from unpooled.exact.shrinkage import Blocks, Shrinkage, shrinkage
from unpooled.kernels.arrays import Arrays, Float
from unpooled.problem import BoundProblem

OPTIMISM = 0.1
SMALL = 1e-10  # of a column's mean square: what is left of it at least, once its mean is taken off
FLAT = 1e-14  # features whose curvature is not more than that of rounding, as part of the intercept's
GROWTH, MOST = 1.2, 4.0  # L grows to so many times the curvature that was seen, and at most so fast


class GradientSolver(ExactSolver):
    """A solver that asks for the loss and the gradient at ``next``, after a first question."""

    is_second_order: ClassVar[bool] = False

    def broadcast(self, problem: BoundProblem, state: State) -> Arrays:
        """The point to evaluate."""
        return {"w": state.arrays["next"]} if state.round else first_question(problem, state)


def first_question(problem: BoundProblem, state: State) -> Arrays:
    """The opening, and a bound of the curvature."""
    return opening(problem, state.arrays["start"], NONE, NONE) | {"curvature": NONE}


def first_facts(problem: BoundProblem, state: State, total: Arrays) -> Arrays:
    """The opening's facts, 1/step, and the units s and τ."""
    of_features, of_intercept = total.get("curvature", np.full(2, 1.0 / OPTIMISM)).tolist()
    facts = opened(problem, state, total)
    units, tau = np.ones(problem.layout.n_coefficients), 1.0
    of_all = "diagonal" in total and total["diagonal_rows"] == total.get("rows")  # a site may keep its own
    if of_all and of_intercept > 0.0:
        units, tau = units_of(problem, total, of_intercept), np.sqrt(of_intercept)
    elif of_features > FLAT * of_intercept:
        tau = np.sqrt(max(of_intercept / of_features, 1.0))
    L = OPTIMISM * (of_features if of_features > FLAT * of_intercept else of_intercept)
    return facts | {"L": np.array(L if L > 0.0 else 1.0), "tau": np.array(tau), "units": units}


def units_of(problem: BoundProblem, total: Arrays, of_intercept: float) -> Float:
    """The s_j of the coefficients: roots of the curvature in each, the intercept's part taken off."""
    h, squares = shrinkage(problem), total["diagonal"]
    assert isinstance(h, Blocks)
    left = squares
    if problem.layout.n_intercepts:
        left = np.maximum(squares - of_intercept * np.square(total["mean_x"]), SMALL * squares)
    n = problem.layout.n_coefficients
    of_column = np.tile(np.where(left > 0.0, left, 1.0), problem.layout.n_outputs)
    of_group = np.bincount(h.of[:n], of_column) / np.maximum(np.bincount(h.of[:n]), 1)
    return np.sqrt(of_group[h.of[:n]])


def penalty_in_units(problem: BoundProblem, a: Arrays) -> Shrinkage:
    """h as a function of the server's coordinates."""
    h = shrinkage(problem)
    if not isinstance(h, Blocks):
        return h
    return h.in_units(np.concatenate([a["units"], np.ones(problem.layout.n_intercepts)]))


def inner(problem: BoundProblem, a: Arrays, w: Float) -> Float:
    """A flat vector of the problem in the server's coordinates."""
    v, n = w.copy(), problem.layout.n_coefficients
    if v.size > n:
        v[n:] = a["tau"] * (v[n:] + shift(problem, v, a["mean_x"]))
    v[:n] *= a["units"]
    return v


def outer(problem: BoundProblem, a: Arrays, v: Float) -> Float:
    """And back."""
    w, n = v.copy(), problem.layout.n_coefficients
    w[:n] /= a["units"]
    if w.size > n:
        w[n:] = w[n:] / a["tau"] - shift(problem, w, a["mean_x"])
    return w


def inner_gradient(problem: BoundProblem, a: Arrays, gradient: Float) -> Float:
    """The gradient with respect to the server's coordinates."""
    n = problem.layout.n_coefficients
    g = gradient.copy()
    if g.size > n:
        g[:n] -= np.multiply.outer(g[n:], a["mean_x"]).ravel()
        g[n:] /= a["tau"]
    g[:n] /= a["units"]
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
