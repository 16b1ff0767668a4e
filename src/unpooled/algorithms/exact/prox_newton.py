"""Proximal Newton on a working set, for generalised linear models.

At w with gradient g, and Hessian H on the working set W,

    d = argmin over d_W   ⟨g, d⟩ + ½dᵀHd + h(w + d),        w ← w + t·d, t by Armijo's rule.

Each round evaluates the loss, its gradient and the Hessian at the next point, so an accepted step costs one
round. The gradient off W shows which coordinates it missed: p + |W|²/2 numbers a round and client.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unpooled.algorithms.base import State
from unpooled.algorithms.exact.base import ExactSolver, bound, opened, opening, refused
from unpooled.algorithms.exact.null_model import null_model
from unpooled.algorithms.exact.oracle import NONE
from unpooled.algorithms.exact.quadratic import minimise
from unpooled.algorithms.exact.shrinkage import Blocks, shrinkage
from unpooled.algorithms.exact.site import unpacked
from unpooled.arrays import Array, Arrays, Float
from unpooled.losses.rowwise import rowwise
from unpooled.problem import BoundProblem

ARMIJO = 1e-4
NEAR = 0.7  # zero coordinates whose gradient reaches this share of λ join the working set
EXTRA = 500  # of them, at most this many or as many as are not zero


@dataclass(frozen=True)
class ProxNewton(ExactSolver):
    """``full_up_to``: the number of coordinates up to which the first Hessian is asked for in full."""

    full_up_to: int = 500

    name: ClassVar[str] = "prox-Newton"
    is_second_order: ClassVar[bool] = True

    def lacks(self, problem: BoundProblem) -> str | None:
        """The loss's second derivative, and a penalty of blocks."""
        loss = rowwise(problem.problem.loss)
        if loss is None or not loss.is_curved:
            return "a loss with a known second derivative (Squared, Logistic, Softmax, Poisson, Huber)"
        if not isinstance(shrinkage(problem), Blocks):
            return "a penalty of separate blocks (L1, ElasticNet, GroupL2, Zero)"
        return None

    def broadcast(self, problem: BoundProblem, state: State) -> Arrays:
        """The trial point and the working set."""
        a, layout = state.arrays, problem.layout
        if state.round:
            return {"w": a["trial"]} | ({"working": a["working"]} if a["working"].size else {})
        p, small = layout.n_coefficients // layout.n_outputs, layout.size <= self.full_up_to
        working = np.arange(layout.size) if small else self._working(problem, a["start"], None)
        whole = p <= self.full_up_to and layout.size <= 4 * self.full_up_to
        return opening(problem, a["start"], np.arange(p) if whole else NONE, working)

    def server_update(self, problem: BoundProblem, state: State, total: Arrays) -> State:
        """Take the trial point, or go back half way; then the next trial point."""
        a = dict(state.arrays)
        if refused(total).any():
            return State(state.round + 1, a | {"refused": refused(total)})
        if state.round == 0:
            return self.again(problem, State(1, self._opened(problem, state, total)))
        trial = float(total["loss"]) + shrinkage(problem).value(a["trial"])
        now = float(a["loss"]) + shrinkage(problem).value(a["w"])
        step, predicted = float(a["step"]), float(a["predicted"])
        slack = 1e-14 * abs(now) + 1e-14 * float(a["scales"][0])
        if np.isfinite(trial) and trial <= now + ARMIJO * step * predicted + slack:
            a |= {"w": a["trial"], "loss": total["loss"], "gradient": total["gradient"]}
            a["hessian"] = unpacked(total["hessian"], len(a["working"])) if "hessian" in total else NONE
            a["on"] = a["working"]
            a["dual"] = np.array(bound(problem, a))
            return self._propose(problem, State(state.round + 1, a))
        rise = trial - now - step * predicted
        shorter = -0.5 * predicted * step**2 / rise if np.isfinite(rise) and rise > 0.0 else 0.1 * step
        a["step"] = np.array(np.clip(shorter, 0.1 * step, 0.5 * step))
        a["trial"] = a["w"] + a["step"] * a["direction"]
        return State(state.round + 1, a)

    def again(self, problem: BoundProblem, state: State) -> State:
        """A step from the last point, with the Hessian known there."""
        a = state.arrays | {"dual": np.array(-np.inf)}
        return self._propose(problem, State(state.round, a | {"dual": np.array(bound(problem, a))}))

    def _opened(self, problem: BoundProblem, state: State, total: Arrays) -> Arrays:
        """The facts of the first round, the Hessian among them if it was asked for."""
        a = opened(problem, state, total) | {"on": NONE, "hessian": np.empty((0, 0))}
        if "gram" in total:
            a["on"] = np.arange(problem.layout.size)
            gram = unpacked(total["gram"], len(total["mean_x"]))
            a["hessian"] = null_model(problem, total).hessian(problem, a["on"], gram, total)
        elif "hessian" in total:
            question = self.broadcast(problem, state)
            a["on"] = question["working"]
            a["hessian"] = unpacked(total["hessian"], len(a["on"]))
        return a

    def _propose(self, problem: BoundProblem, state: State) -> State:
        """The next trial point and the working set on which its Hessian will be asked for."""
        a, h = dict(state.arrays), shrinkage(problem)
        assert isinstance(h, Blocks)
        w, g, on = a["w"], a["gradient"], a["on"]
        direction, model_gradient = np.zeros_like(w), g.copy()
        if on.size:
            H = a["hessian"]
            v = minimise(H, H @ w[on] - g[on], h.within(on), w[on])
            direction[on] = v - w[on]
            model_gradient[on] += H @ direction[on]
        trial = w + direction
        predicted = float(g @ direction) + h.value(trial) - h.value(w)
        predicted = min(predicted, 0.0)  # at the end it is rounding, and the step still counts
        a |= {"trial": trial, "direction": direction, "predicted": np.array(predicted), "step": np.array(1.0)}
        a["working"] = self._working(problem, trial, model_gradient)
        return State(state.round, a)

    def _working(self, problem: BoundProblem, w: Float, gradient: Float | None) -> Array:
        """Whole groups: free or not zero, or zero with a gradient near λ, the steepest first."""
        h = shrinkage(problem)
        assert isinstance(h, Blocks)
        kept = (h.norms(w) > 0.0) | (h.weight == 0.0)
        if gradient is not None:
            steep = h.norms(gradient) / np.where(h.weight > 0.0, h.weight, 1.0)
            near = np.flatnonzero(~kept & (steep >= NEAR))
            room = max(EXTRA, int(kept.sum()))
            kept[near[np.argsort(-steep[near], kind="stable")[:room]]] = True
        return np.flatnonzero(kept[h.of])
