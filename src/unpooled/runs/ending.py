"""What the end of a run tells: how far its model is from the optimum, and whether the objective has risen."""

from __future__ import annotations

import numpy as np

from unpooled.algorithms.base import State
from unpooled.exact.anderson import AndersonProxGradient
from unpooled.exact.base import opened
from unpooled.exact.certificate import Certificate
from unpooled.exact.clients import Question
from unpooled.exact.oracle import NONE
from unpooled.exact.rounds import Server
from unpooled.kernels.arrays import Arrays, Float
from unpooled.problem import BoundProblem

RISE = 0.01  # of what the objective had fallen by; less is said to be level


def certificate_at(problem: BoundProblem, w: Float, server: Server) -> Certificate:
    """The certificate of a flat w, by one round: every client answers with its loss, gradient and moments."""
    solver = AndersonProxGradient()
    w = np.asarray(w, dtype=np.float64)
    [total] = server.ask([Question(solver, problem, {"w": w, "features": NONE})])
    return solver.certificate(problem, State(1, opened(problem, solver.init(problem, w), total)))


def risen(history: Arrays) -> str | None:
    """A sentence where the last recorded objective is well above the least one, and what can be done."""
    rounds, objective = history["round"], history["objective"]
    if not len(objective):
        return None
    best = int(np.argmin(objective))
    first, least, last = (float(objective[i]) for i in (0, best, -1))
    if last - least <= RISE * (first - least) + 1e-9 * abs(least):
        return None
    return (
        f"the objective has risen since round {rounds[best]}, from {least:.6g} to {last:.6g}: take a smaller "
        "step, fewer local steps, or a schedule that shrinks the steps; run.best is that round's iterate."
    )
