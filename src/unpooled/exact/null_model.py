"""The model without coefficients, from moments alone: where λ paths and exact solvers start.

For a loss with a canonical link (squared, logistic, softmax, Poisson) the residuals at w = 0 are μ_0 − t, the
same μ_0 for all rows. The means of x, t and x·t then give the best intercept, the loss and the gradient
there, and the Gram matrix of x gives the Hessian: everything for a first Newton step, in the first round.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpooled.kernels.arrays import Array, Arrays, Float
from unpooled.losses import Logistic, Poisson, Softmax, Squared
from unpooled.losses.rowwise import rowwise
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
    loss = rowwise(problem.problem.loss)
    alike = not problem.problem.has_site_intercepts or isinstance(problem.problem.loss, Squared)
    return loss is not None and loss.is_canonical and alike


def null_model(problem: BoundProblem, total: Arrays) -> NullModel:
    """From the moments ``mean_x``, ``mean_t``, ``mean_xt`` and ``mean_yy`` of all rows."""
    layout, loss = problem.layout, problem.problem.loss
    t, C = total["mean_t"], layout.n_outputs
    w = np.zeros(layout.size)
    mu = {Squared: 0.0, Logistic: 0.5, Softmax: 1.0 / C, Poisson: 1.0}[type(loss)] * np.ones(C)
    if layout.n_intercepts:
        mu = t
        w[layout.n_coefficients :] = _intercept(problem, t)
    curvature = np.diag(mu) - np.multiply.outer(mu, mu)
    if isinstance(loss, Squared):
        curvature = np.ones((1, 1))
        value = 0.5 * float(total["mean_yy"]) - float(t[0] * mu[0]) + 0.5 * float(mu[0] ** 2)
    elif isinstance(loss, Poisson):
        curvature = mu[:, None]
        value = float(mu[0] - t[0] * np.log(mu[0]))
    elif isinstance(loss, Logistic):
        value = -float(t[0] * np.log(mu[0]) + (1.0 - t[0]) * np.log(1.0 - mu[0]))
    else:
        value = -float(t @ np.log(mu))
    gradient = np.multiply.outer(mu, total["mean_x"]).ravel() - total["mean_xt"]
    if layout.n_intercepts:
        gradient = np.concatenate([gradient, np.zeros(C)])
    return NullModel(w, max(value, 0.0) if isinstance(loss, Squared) else value, gradient, curvature)


def _intercept(problem: BoundProblem, t: Float) -> Float:
    """The best intercepts of a model without coefficients, refused where they are infinite."""
    loss = problem.problem.loss
    if isinstance(loss, Squared):
        return t
    if isinstance(loss, Logistic) and not 0.0 < t[0] < 1.0:
        raise ValueError(
            f"every label of every client is {'positive' if t[0] > 0 else 'negative'}: "
            "with one class the intercept has no finite optimum"
        )
    if isinstance(loss, Poisson) and not t[0] > 0.0:
        raise ValueError("every count of every client is 0: the intercept has no finite optimum")
    if isinstance(loss, Softmax) and not (t > 0.0).all():
        missing = ", ".join(str(c) for c in np.flatnonzero(t <= 0.0))
        raise ValueError(f"no client has a row of class {missing}: its intercept has no finite optimum")
    return np.log(t / (1.0 - t)) if isinstance(loss, Logistic) else np.log(t)
