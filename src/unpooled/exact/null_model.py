"""The model without coefficients, from moments alone: where λ paths and exact solvers start.

For a loss with a canonical link (squared, logistic, softmax, Poisson) the residuals at w = 0 are μ_0 − t, the
same μ_0 for all rows. The means of x, t and x·t then give the best intercept, the loss and the gradient
there, and the Gram matrix of x gives the Hessian: everything for a first Newton step, in the first round.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpooled.kernels.arrays import Array, Arrays, Float
from unpooled.problem import BoundProblem


@dataclass(frozen=True)
class NullModel:
    """The flat point, its loss and gradient; μ_0 and d²ℓ/dz² (C, C), the same for every row."""

    w: Float
    loss: float
    gradient: Float
    curvature: Float

    def hessian(self, problem: BoundProblem, working: Array, gram: Float, total: Arrays) -> Float:
        """The Hessian on the working set, from the Gram matrix of all features in it."""
        p = len(total["mean_x"])
        extended = np.block([[gram, total["mean_x"][:, None]], [total["mean_x"][None, :], np.ones((1, 1))]])
        is_intercept = working >= problem.layout.n_coefficients
        column = np.where(is_intercept, p, working % p)
        output = np.where(is_intercept, working - problem.layout.n_coefficients, working // p)
        return np.asarray(extended[np.ix_(column, column)] * self.curvature[np.ix_(output, output)])


def has_null_model(problem: BoundProblem) -> bool:
    """Whether moments tell all about it: a canonical loss, and residuals with the same μ_0 at every site."""
    loss = problem.linear
    if loss is None or not loss.offers("mean", "link", "constant_loss", "second_derivative"):
        return False
    return loss.is_least_squares or not problem.problem.has_site_intercepts


def null_model(problem: BoundProblem, total: Arrays) -> NullModel:
    """From the moments ``mean_x``, ``mean_t``, ``mean_xt`` and ``mean_yy`` of all rows."""
    layout, loss = problem.layout, problem.linear
    assert loss is not None
    t, C = total["mean_t"], layout.n_outputs
    z, w = np.zeros(C), np.zeros(layout.size)
    mu = loss.mean(z[None])[0]
    if layout.n_intercepts:
        z, mu = loss.link(t), t
        w[layout.n_coefficients :] = z
    P = loss.second_derivative(z[None], np.zeros(1))[0]
    curvature = P[:, None] if C == 1 else np.diag(P) - np.multiply.outer(P, P)
    gradient = np.multiply.outer(mu, total["mean_x"]).ravel() - total["mean_xt"]
    if layout.n_intercepts:
        gradient = np.concatenate([gradient, np.zeros(C)])
    return NullModel(w, loss.constant_loss(z, t, float(total["mean_yy"])), gradient, curvature)
