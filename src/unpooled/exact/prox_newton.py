"""Proximal Newton on a working set, for generalised linear models.

At w with gradient g, and Hessian H on the working set W,

    d = argmin over d_W   ⟨g, d⟩ + ½dᵀHd + h(w + d),        w ← w + t·d, t by Armijo's rule.

Each round evaluates the loss, its gradient and the Hessian at the next point, so an accepted step costs one
round. The gradient off W shows which coordinates it missed: p + |W|²/2 numbers a round and client.

Where some clients keep their Hessians, those of the others and the gradients of all make H (``mixed``); not
for several outputs, whose Hessian is singular in directions that its diagonal does not show. The rows are
centred (``origin``) where a mean is large beside the spread. Where the dual bound lags behind at the end, the
next question asks for a better dual point as well (``dual_point``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unpooled.algorithms.base import State
from unpooled.exact.base import (
    MOMENTS,
    ExactSolver,
    bound,
    centred,
    opened,
    opening,
    refused,
)
from unpooled.exact.dual_point import can_tilt, lags, tilt, tilted_bound
from unpooled.exact.mixed import completed, completed_gram, learnt
from unpooled.exact.null_model import null_model
from unpooled.exact.oracle import NONE
from unpooled.exact.quadratic import minimise
from unpooled.exact.shrinkage import Blocks, shrinkage
from unpooled.exact.site import packed, unpacked
from unpooled.kernels.arrays import Array, Arrays, Float
from unpooled.problem import BoundProblem

ARMIJO = 1e-4
NEAR = 0.7  # zero coordinates whose gradient reaches this share of λ join the working set
EXTRA = 500  # of them, at most this many or as many as are not zero
FAR = 25.0  # x̄²/var x beyond which rows are centred
POINTS = 3  # evaluated points that are remembered where the Hessian changes; more where it does not
TILTS = 3  # dual points that are asked for after the KKT residual is small enough


@dataclass(frozen=True)
class ProxNewton(ExactSolver):
    """``full_up_to``: the number of coordinates up to which the first Hessian is asked for in full."""

    full_up_to: int = 500

    name: ClassVar[str] = "prox-Newton"
    is_second_order: ClassVar[bool] = True

    def lacks(self, problem: BoundProblem) -> str | None:
        """The loss's second derivative, and a penalty of blocks."""
        loss = problem.linear
        if loss is None or not loss.offers("second_derivative"):
            return "a loss with a known second derivative (Squared, Logistic, Softmax, Poisson, Huber)"
        if not isinstance(shrinkage(problem), Blocks):
            return "a penalty of separate blocks (L1, ElasticNet, GroupL2, Zero)"
        return None

    def broadcast(self, problem: BoundProblem, state: State) -> Arrays:
        """The trial point and the working set; perhaps a dual point."""
        a, layout = state.arrays, problem.layout
        if state.round:
            names = ("working", "origin", "base", "tilt")
            return {"w": a["trial"]} | {name: a[name] for name in names if name in a and a[name].size}
        p, small = layout.n_coefficients // layout.n_outputs, layout.size <= self.full_up_to
        working = np.arange(layout.size) if small else self._working(problem, a["start"], None)
        whole = p <= self.full_up_to and layout.size <= 4 * self.full_up_to
        return opening(problem, a["start"], np.arange(p) if whole else NONE, working)

    def server_update(self, problem: BoundProblem, state: State, total: Arrays) -> State:
        """Take the trial point, or go back half way."""
        nobody = not {"gram", "hessian"} & set(total)
        if refused(total).any() and (nobody or problem.layout.n_outputs > 1):
            return State(state.round + 1, state.arrays | {"refused": refused(total)})
        if state.round == 0:
            return self.again(problem, State(1, self._opened(problem, state, total)))
        a = dict(state.arrays)
        trial = float(total["loss"]) + shrinkage(problem).value(a["trial"])
        now = float(a["loss"]) + shrinkage(problem).value(a["w"])
        step, predicted = float(a["step"]), float(a["predicted"])
        slack = 1e-14 * abs(now) + 1e-14 * float(a["scales"][0])
        if "conjugate" in total:
            best = tilted_bound(problem, shrinkage(problem), a, total)
            a |= {"dual": np.array(max(float(a["dual"]), best)), "tilts": a["tilts"] + 1}
        a |= {"base": NONE, "tilt": NONE}
        if "points" in a and np.isfinite(total["gradient"]).all():
            a |= remembered(a, [a["trial"]], [total["gradient"]], is_quadratic(problem))
        if np.isfinite(trial) and trial <= now + ARMIJO * step * predicted + slack:
            a |= {"w": a["trial"], "loss": total["loss"], "gradient": total["gradient"]}
            if a["working"].size:
                a |= _curvature(total, a["working"])
            a["dual"] = np.array(bound(problem, a))
            return State(state.round + 1, a | {"trial": NONE, "failed": np.array(False)})
        rise = trial - now - step * predicted
        shorter = -0.5 * predicted * step**2 / rise if np.isfinite(rise) and rise > 0.0 else 0.1 * step
        a["step"] = np.array(np.clip(shorter, 0.1 * step, 0.5 * step))
        again = "points" in a and not a["failed"]  # the failure has taught something: try the better matrix
        a["trial"] = NONE if again else a["w"] + a["step"] * a["direction"]
        return State(state.round + 1, a | {"failed": np.array(True)})

    def taken_over(self, problem: BoundProblem, state: State, start: Float) -> State | None:
        """The state after a round of sufficient statistics that some clients refused; None where all did.

        In other folds nobody may have refused; there the matrix is whole.
        """
        total = {name[5:]: array for name, array in state.arrays.items() if name.startswith("sent/")}
        if "gram" in state.arrays and "center" not in state.arrays:
            total = {name: state.arrays[name] for name in MOMENTS} | {"gram": packed(state.arrays["gram"])}
        elif "gram" not in total or state.round > 1:
            return None
        opened = self.server_update(problem, self.init(problem, start), total)
        return State(opened.round, {name: a for name, a in opened.arrays.items() if name != "kept_back"})

    def again(self, problem: BoundProblem, state: State) -> State:
        """From the last point, with the Hessian known there."""
        a = state.arrays | {"dual": np.array(-np.inf), "trial": NONE, "failed": np.array(False)}
        a |= {"base": NONE, "tilt": NONE, "tilts": np.array(0)}
        return State(state.round, a | {"dual": np.array(bound(problem, a))})

    def exchange(self, states: Sequence[State]) -> Sequence[State]:
        """Points that one has evaluated serve all, where the Hessian to be learnt is the same everywhere."""
        if len(states) < 2 or any("is_constant" not in state.arrays for state in states):
            return states
        points = np.concatenate([state.arrays["points"] for state in states])
        slopes = np.concatenate([state.arrays["slopes"] for state in states])
        _, first = np.unique(points, axis=0, return_index=True)
        shared = {"points": points[np.sort(first)], "slopes": slopes[np.sort(first)]}
        return [State(state.round, state.arrays | shared) for state in states]

    def wants_proof(self, problem: BoundProblem, state: State) -> bool:
        """Where the dual bound is not there yet and can be asked for."""
        a = state.arrays
        return can_tilt(problem) and float(a["dual"]) == -np.inf and int(a["tilts"]) < TILTS

    def _opened(self, problem: BoundProblem, state: State, total: Arrays) -> Arrays:
        """The facts of the first round, the Hessian among them if it was asked for."""
        a = opened(problem, state, total)
        a |= {"on": NONE, "hessian": np.empty((0, 0)), "refused": np.zeros(2, dtype=np.int64)}
        a["working"] = NONE
        has_intercept, p = problem.layout.n_intercepts > 0, len(total["mean_x"])
        if "diagonal" in total:
            nothing = np.empty((0, problem.layout.size))
            a |= {"kept_back": refused(total), "points": nothing, "slopes": nothing}
            if is_quadratic(problem):
                a["is_constant"] = np.array(1)
        if "gram" in total:
            gram = unpacked(total["gram"], p)
            if "diagonal" in total:
                gram = completed_gram(gram, total, has_intercept)
            spread = np.diag(gram) - np.square(total["mean_x"])
            far = bool((np.square(total["mean_x"]) > FAR * spread).any())
            a["on"] = np.arange(problem.layout.size)
            null, moments = null_model(problem, total), total
            if has_intercept and (far or "diagonal" in total):
                a = centred(problem, a, total["mean_x"])
                gram = gram - np.multiply.outer(total["mean_x"], total["mean_x"])
                moments = {"mean_x": np.zeros(p)}
            a["hessian"] = null.hessian(problem, a["on"], gram, moments)
        elif "hessian" in total:
            a |= _curvature(total, self.broadcast(problem, state)["working"])
        if "points" in a:
            a |= remembered(a, [a["w"]], [a["gradient"]], True)
        return a

    def propose(self, problem: BoundProblem, state: State) -> State:
        """The next trial point and the working set on which its Hessian will be asked for."""
        if state.round == 0 or state.arrays["trial"].size:
            return state
        a, h = dict(state.arrays), shrinkage(problem)
        assert isinstance(h, Blocks)
        w, g, on = a["w"], a["gradient"], a["on"]
        direction, model_gradient = np.zeros_like(w), g.copy()
        if on.size:
            H = a["hessian"] if "points" not in a else learnt(a["hessian"], *_secants(a))
            v = minimise(H, H @ w[on] - g[on], h.within(on), w[on])
            direction[on] = v - w[on]
            model_gradient[on] += H @ direction[on]
        trial = w + direction
        predicted = float(g @ direction) + h.value(trial) - h.value(w)
        predicted = min(predicted, 0.0)  # at the end it is rounding, and the step still counts
        a |= {"trial": trial, "direction": direction, "predicted": np.array(predicted), "step": np.array(1.0)}
        if lags(problem, a, h):
            a |= {"base": w, "tilt": tilt(a, h, on, H)}
        known = is_quadratic(problem) and len(on) == len(w)  # it will be the same everywhere
        a["working"] = NONE if known else self._working(problem, trial, model_gradient)
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


def remembered(a: Arrays, points: Sequence[Float], slopes: Sequence[Float], all_of_them: bool) -> Arrays:
    """Evaluated points and the gradients there, the last ones where the Hessian changes with w."""
    most = 10**6 if all_of_them else POINTS
    return {
        "points": np.vstack([a["points"], *points])[-most:],
        "slopes": np.vstack([a["slopes"], *slopes])[-most:],
    }


def _secants(a: Arrays) -> tuple[Float, Float]:
    """Steps from w to the points that lie in the span of the Hessian, and how the gradient changes."""
    S, Y, on = a["points"] - a["w"], a["slopes"] - a["gradient"], a["on"]
    off = np.ones(S.shape[1], dtype=bool)
    off[on] = False
    kept = ~S[:, off].any(axis=1)
    return S[kept][:, on], Y[kept][:, on]


def _curvature(total: Arrays, working: Array) -> Arrays:
    """The Hessian on the working set, completed where clients keep theirs."""
    H = unpacked(total["hessian"], len(working)) if "hessian" in total else np.zeros((len(working),) * 2)
    if "diagonal" in total:
        H = completed(H, total["diagonal"])
    return {"on": working, "hessian": H}


def is_quadratic(problem: BoundProblem) -> bool:
    """Whether the Hessian is the same everywhere."""
    return problem.linear is not None and problem.linear.is_least_squares
