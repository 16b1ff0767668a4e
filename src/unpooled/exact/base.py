"""What an exact solver is: the protocol of ``algorithms.base`` with an oracle for a client.

A few reliable sites (hospitals, banks) can answer exactly, and each round costs them more than any
arithmetic. So a client does not take local steps; it is asked, and answers with sums over its rows
(``oracle``). A round is

    question = broadcast(state)         server   named arrays, the same for every client
    up_k = answer(client, question)     client   named arrays of any shape
    total = Σ_k π_k up_k                engine   answers are only ever summed; counts are added as they are
    state = server_update(total)        server

and ``estimate(state)`` is the only way to a model. Every evaluated point comes with its loss and gradient,
from which ``certificate(state)`` proves how far it is from the optimum: no solver needs a round to know
that it may stop. ``again`` takes the state to another λ and keeps what was learnt.

A state holds, once its first round is done:

    w, loss, gradient          the best point so far, in flat form, and what clients answered there
    mean_x, mean_t, mean_xt, mean_yy, floor, rows      moments (see ``oracle``)
    scales                     of the loss and of the gradient, for certificates
    dual                       the best lower bound of the optimal objective
    refused                    how many clients refused second-order statistics: too few rows; rare values
    origin                     where there is one, all of this is for the rows x − origin
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unpooled._wording import part_of
from unpooled.algorithms.base import State
from unpooled.exact import oracle
from unpooled.exact.certificate import Certificate, certify, dual_bound, has_dual
from unpooled.exact.expected import Rule, expected
from unpooled.exact.null_model import has_null_model, null_model
from unpooled.exact.oracle import NONE
from unpooled.exact.shrinkage import Blocks, shrinkage
from unpooled.exact.site import Site
from unpooled.kernels.arrays import Array, Arrays, Float
from unpooled.problem import BoundProblem

MOMENTS = ("mean_x", "mean_t", "mean_xt", "mean_yy", "floor", "rows")


@dataclass(frozen=True)
class ExactSolver(ABC):
    """The protocol; every exact solver implements it.

    ``min_rows``: a client with fewer rows, or with a column in which fewer rows stand out, shares no
    second-order statistics.
    """

    min_rows: int = 10

    name: ClassVar[str]
    was: ClassVar[str] = "was"  # the verb that goes with the name
    is_second_order: ClassVar[bool]

    def is_final(self, state: State) -> bool:
        """Whether all has been asked that this solver can ask."""
        return False

    def lacks(self, problem: BoundProblem) -> str | None:
        """What the problem would need for this solver, if it does not have it."""
        return None

    def init(self, problem: BoundProblem, w0: Float) -> State:
        """The state before the first round."""
        return State(0, {"start": w0, "refused": np.zeros(2, dtype=np.int64)})

    def propose(self, problem: BoundProblem, state: State) -> State:
        """The state with the next point to ask about; for solvers that do not know it after an update."""
        return state

    def exchange(self, states: Sequence[State]) -> Sequence[State]:
        """States of the same rows at several λ, each with what the others have learnt."""
        return states

    def wants_proof(self, problem: BoundProblem, state: State) -> bool:
        """Whether a round more can turn a KKT residual into a duality gap."""
        return False

    @abstractmethod
    def broadcast(self, problem: BoundProblem, state: State) -> Arrays:
        """The question to every client."""

    def answer(self, problem: BoundProblem, site: Site, question: Arrays) -> Arrays:
        """One client's answer."""
        return oracle.answer(problem, site, question, self.min_rows)

    def expected(self, problem: BoundProblem, question: Arrays, n_rows: int) -> dict[str, Rule]:
        """What an answer about so many rows must look like, where it comes from elsewhere."""
        return expected(problem, question, n_rows)

    @abstractmethod
    def server_update(self, problem: BoundProblem, state: State, total: Arrays) -> State:
        """The next state."""

    @abstractmethod
    def again(self, problem: BoundProblem, state: State) -> State:
        """The state, whose last point was found for another λ, made ready for this problem's."""

    def estimate(self, problem: BoundProblem, state: State) -> Float:
        """The model: a point that was evaluated.

        Softmax knows its intercepts, and a feature's coefficients where none is penalised, up to a number
        added to all of them; they are made to sum to zero.
        """
        w, n, h = state.arrays["w"].copy(), problem.layout.n_coefficients, shrinkage(problem)
        if "origin" in state.arrays:
            w[n:] -= shift(problem, w, state.arrays["origin"])
        if problem.linear is None or not problem.linear.is_shift_invariant:
            return w
        w[n:] -= w[n:].mean() if w.size > n else 0.0
        if isinstance(h, Blocks) and h.free.size:
            W, is_free = w[:n].reshape(problem.layout.n_outputs, -1), np.zeros(n, dtype=bool)
            is_free[h.free] = True
            free = is_free.reshape(W.shape).all(axis=0)
            W[:, free] -= W[:, free].mean(axis=0)
        return w

    def certificate(self, problem: BoundProblem, state: State) -> Certificate:
        """How far ``estimate`` is from the optimum."""
        a = state.arrays
        scales = float(a["scales"][0]), float(a["scales"][1])
        h = shrinkage(problem)
        return certify(problem, h, a["w"], float(a["loss"]), a["gradient"], a, scales, float(a["dual"]))


def opening(problem: BoundProblem, start: Float, features: Array, working: Array) -> Arrays:
    """The first question: moments, which tell all about w = 0 for canonical losses, or else the point."""
    if has_null_model(problem) and not start.any():
        return {"features": features}
    return {"w": start, "features": NONE} | ({"working": working} if working.size else {})


def opened(problem: BoundProblem, state: State, total: Arrays) -> Arrays:
    """What the state holds after the first round."""
    arrays = {name: total[name] for name in MOMENTS} | {"refused": refused(total), "dual": np.array(-np.inf)}
    steep = float(np.abs(total["mean_xt"]).max())
    if has_null_model(problem):
        null = null_model(problem, total)
        scale, steep = null.loss - float(total["floor"]), float(np.abs(null.gradient).max())
        arrays |= {"w": null.w, "loss": np.array(null.loss), "gradient": null.gradient}
    if "loss" in total:
        arrays |= {"w": state.arrays["start"], "loss": total["loss"], "gradient": total["gradient"]}
        if not has_null_model(problem):
            scale, steep = (
                float(total["loss"] - total["floor"]),
                max(steep, float(np.abs(total["gradient"]).max())),
            )
    if not np.isfinite(arrays["loss"]):
        raise ValueError("the objective at the start w0 is not finite")
    tiny = 1e-14 * (abs(float(arrays["loss"])) + float(total["mean_yy"])) + 1e-300
    arrays["scales"] = np.array([max(abs(scale), tiny), max(steep, tiny)])
    return arrays | {"dual": np.array(bound(problem, arrays))}


def shift(problem: BoundProblem, w: Float, origin: Float) -> Float:
    """origin·w of each output: what an intercept takes over when rows lose ``origin``."""
    return np.asarray(w[: problem.layout.n_coefficients].reshape(problem.layout.n_outputs, -1) @ origin)


def centred(problem: BoundProblem, a: Arrays, origin: Float) -> Arrays:
    """The facts of an opening for the rows x − origin; questions carry the origin from then on.

    Means that are large beside the spread cost digits: of the gradient, whose noise is then larger than a
    small λ, and of the Hessian.
    """
    n, w, g = problem.layout.n_coefficients, a["w"].copy(), a["gradient"].copy()
    w[n:] += shift(problem, w, origin)
    g[:n] -= np.multiply.outer(g[n:], origin).ravel()
    moved = {
        "mean_x": a["mean_x"] - origin,
        "mean_xt": a["mean_xt"] - np.multiply.outer(a["mean_t"], origin).ravel(),
    }
    return a | moved | {"w": w, "gradient": g, "origin": origin}


def refused(total: Arrays) -> Array:
    """How many clients refused: for too few rows, for rare values."""
    return np.array([int(total.get("refused_rows", 0)), int(total.get("refused_columns", 0))])


def reasons(counts: Array, n_clients: int, least: int, at_least: bool = False) -> str:
    """Why so many clients ``refused`` to send second-order statistics; empty where none did.

    ``at_least``: more than were counted may have rare values.
    """
    rows, values = (int(count) for count in counts)
    found = [f"{part_of(rows, n_clients, 'client', 'has', 'have')} fewer than {least} rows"] if rows else []
    if values:
        who = ("at least " if at_least else "") + part_of(values, n_clients, "client", "has", "have")
        found.append(f"{who} a column in which fewer than {least} rows stand out")
    return " and ".join(found)


def bound(problem: BoundProblem, arrays: Arrays) -> float:
    """The best lower bound of the optimal objective, this point's included."""
    h = shrinkage(problem)
    if not has_dual(problem, h):
        return float(arrays["dual"])
    here = dual_bound(problem, h, arrays["w"], float(arrays["loss"]), arrays["gradient"], arrays)
    return max(float(arrays["dual"]), here)
