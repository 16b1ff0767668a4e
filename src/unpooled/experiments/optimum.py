"""The exact optimum ŵ of an experiment's pooled problem, which its figures show as a line."""

from __future__ import annotations

import numpy as np

from unpooled.data.federated import FederatedData
from unpooled.exact.solve import solve
from unpooled.kernels.arrays import Float
from unpooled.problem import Problem

TOLERANCE = 1e-10  # of the duality gap, relative to the loss that there is to explain


def has_exact_optimum(problem: Problem) -> bool:
    """Whether it takes no time worth mentioning."""
    least_squares = problem.linear is not None and problem.linear.is_least_squares
    return (least_squares or hasattr(problem.loss, "optimum")) and not problem.intercept


def exact_optimum(problem: Problem, data: FederatedData) -> Float:
    """ŵ, in the shape of the coefficients."""
    if hasattr(problem.loss, "optimum"):
        return np.asarray(problem.loss.optimum(data, problem.penalty))
    return solve(problem, data, tol=TOLERANCE, min_rows=0).w
