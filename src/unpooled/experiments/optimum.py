"""The exact optimum ŵ of an experiment's pooled problem, which its figures show as a line.

For least squares the pooled Gram matrix and Xᵀy are enough: accelerated proximal gradient with restarts
(Beck and Teboulle 2009; O'Donoghue and Candès 2015) on them costs one p × p product an iteration.
"""

from __future__ import annotations

import numpy as np

from unpooled.arrays import Float
from unpooled.data import FederatedData
from unpooled.experiments.quadratic import NoisyQuadratic
from unpooled.losses import Squared
from unpooled.problem import Problem

MOST_STEPS = 50_000
TOLERANCE = 1e-11  # the last step, relative to ŵ


def has_exact_optimum(problem: Problem) -> bool:
    """Whether ``exact_optimum`` can find it."""
    return isinstance(problem.loss, Squared | NoisyQuadratic) and not problem.intercept


def exact_optimum(problem: Problem, data: FederatedData) -> Float:
    """ŵ, in the shape of the coefficients."""
    if isinstance(problem.loss, NoisyQuadratic):
        return problem.loss.optimum(data, problem.penalty)
    bound = problem.bind(data)
    X = np.asarray(data.X, dtype=np.float64).reshape(data.n_rows, -1)
    weighted = X.T * data.row_weights
    gram, target = weighted @ X, weighted @ data.y
    L = float(np.linalg.eigvalsh(gram)[-1])
    w = v = np.zeros(bound.layout.size)
    t = 1.0
    for _ in range(MOST_STEPS):
        new = bound.prox(v - (gram @ v - target) / L, 1.0 / L)
        step = np.linalg.norm(new - w)
        if np.dot(v - new, new - w) > 0:  # the momentum points uphill
            t = 1.0
        later = (1.0 + np.sqrt(1.0 + 4.0 * t * t)) / 2.0
        v = new + (t - 1.0) / later * (new - w)
        w, t = new, later
        if step <= TOLERANCE * (np.linalg.norm(w) + 1e-300):
            return bound.layout.unpack(w)[0]
    raise ArithmeticError(f"the exact optimum was not reached in {MOST_STEPS} steps; the last was {step:.2g}")
