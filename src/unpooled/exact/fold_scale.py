"""What the statistics of a fold's training rows say of how its columns vary, and columns scaled by that.

The statistics tell the variances of the training rows, d_j² = Σ s x_j² − (Σ s x_j)². Rows x/d have the
statistics below, so the server changes coordinates fold by fold and no client is asked again:

    gram_jk / (d_j d_k),    mean_x_j / d_j,    mean_xt_j / d_j
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unpooled.exact.base import ExactSolver
from unpooled.exact.site import packed, unpacked
from unpooled.exact.sufficient_statistics import SufficientStatistics
from unpooled.kernels.arrays import Array, Arrays, Float
from unpooled.problem import BoundProblem

ROUNDING = 1e-11  # of Σ s x²: a variance below it is none


def check_fold_scale(solver: ExactSolver, problem: BoundProblem, notes: Sequence[str]) -> None:
    """Refuse to scale fold by fold where the folds' statistics are not all at hand; ``notes`` say why."""
    if problem.problem.has_site_intercepts:
        lacks = "with site intercepts the folds' statistics are about the sites' means and lack the variances"
    elif not isinstance(solver, SufficientStatistics):
        lacks = f"this fit is by {solver.name}" + (f": {notes[-1]}" if notes else "")
    else:
        return
    raise ValueError(
        "standardise='fold' takes the scale of each fold from sufficient statistics, which the squared loss "
        f"has, but {lacks.rstrip('.')}. standardise=True scales once over all rows, with every solver"
    )


def deviations(total: Arrays) -> Float:
    """The standard deviations d of the rows behind these statistics; 1 where a column does not vary."""
    variance, varies = _variances(total)
    return np.sqrt(np.where(varies, variance, 1.0))


def without_rounding(total: Arrays) -> Arrays:
    """The same where centred columns that do not vary are exactly zero, not as large as rounding leaves them.

    A column may vary over all rows and not over those outside a fold; if it is unpenalised, its coefficient
    would be the quotient of two rounding errors.
    """
    _, varies = _variances(total)
    if varies.all():
        return total
    mean, constant = total["mean_x"], np.flatnonzero(~varies)
    gram, xt = unpacked(total["gram"], len(mean)), total["mean_xt"].copy()
    gram[constant] = np.multiply.outer(mean[constant], mean)
    gram[:, constant] = gram[constant].T
    xt[constant] = float(total["mean_t"][0]) * mean[constant]
    return total | {"gram": packed(gram), "mean_xt": xt}


def _variances(total: Arrays) -> tuple[Float, Array]:
    """The variance of each column, and whether it is more than rounding."""
    j, p = np.arange(len(total["mean_x"])), len(total["mean_x"])
    squares = total["gram"][j * p - j * (j - 1) // 2]  # the diagonal of a packed triangle
    variance = squares - np.square(total["mean_x"])
    return variance, variance > ROUNDING * squares


def divided(total: Arrays, d: Float) -> Arrays:
    """The statistics of the rows x/d."""
    rows, columns = np.triu_indices(len(d))
    return total | {
        "gram": total["gram"] / (d[rows] * d[columns]),
        "mean_x": total["mean_x"] / d,
        "mean_xt": total["mean_xt"] / d,
    }
