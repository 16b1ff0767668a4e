"""Choosing λ by an information criterion: no rounds, no held-out rows.

    BIC = −2 log-likelihood + df log N,        EBIC = BIC + 2γ log (p choose df)

with df the number of coefficients that are not zero (Zou, Hastie and Tibshirani 2007; Chen and Chen 2008).
For the squared loss the variance is profiled out: −2 log-likelihood = N log(RSS/N) up to a constant.
"""

from __future__ import annotations

import math

import numpy as np

from unpooled.exact.path import Path
from unpooled.kernels.arrays import Float


def information(path: Path, criterion: str = "bic", gamma: float = 1.0) -> Float:
    """The criterion at each λ of a path: "bic", "ebic" (with ``gamma`` between 0 and 1) or "aic"."""
    if criterion not in ("aic", "bic", "ebic"):
        raise ValueError(f"criterion must be 'aic', 'bic' or 'ebic', got {criterion!r}")
    if not 0.0 <= gamma <= 1.0:
        raise ValueError(f"gamma must lie between 0 and 1, got {gamma!r}")
    loss = path.problem.loss
    if path.problem.linear is None or not path.problem.linear.offers("deviance"):
        raise ValueError(f"{type(loss).__name__} is not a log-likelihood: use cross_validate")
    if not getattr(path.problem.penalty, "counts_nonzeros", True):
        raise ValueError("the degrees of freedom of a low-rank fit are not its non-zeros: use cross_validate")
    N, df = path.n_rows, np.array(path.n_nonzero, dtype=np.float64)
    deviance = loss.deviance(path.losses, N)
    if criterion == "aic":
        return np.asarray(deviance + 2.0 * df)
    score = deviance + df * math.log(N)
    if criterion == "bic":
        return np.asarray(score)
    shape = path.coefs[0].shape
    unpenalised = getattr(path.problem.penalty, "unpenalised", None)
    # those without a penalty are in every model: there is nothing to choose
    free = np.zeros(shape, dtype=bool) if unpenalised is None else unpenalised(shape)
    p = int(np.sum(~free))
    chosen = [int(np.count_nonzero(w[~free])) for w in path.coefs]
    choices = [math.lgamma(p + 1) - math.lgamma(k + 1) - math.lgamma(p - k + 1) for k in chosen]
    return np.asarray(score + 2.0 * gamma * np.array(choices))


def select(path: Path, criterion: str = "bic", gamma: float = 1.0) -> int:
    """The position of the λ with the least criterion; the larger λ of equals."""
    return int(np.argmin(information(path, criterion, gamma)))
