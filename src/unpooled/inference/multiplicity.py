"""Many tests at once: the false discovery rate (Benjamini and Hochberg 1995)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unpooled.kernels.arrays import Float


def benjamini_hochberg(p_values: ArrayLike) -> Float:
    """Adjusted p-values: p_(i) · m/i, made monotone from the largest down. NaN stays NaN and is not counted.

    Rejecting those ≤ q keeps the expected share of false rejections at most q, for p-values that are
    independent or positively dependent.
    """
    p = np.asarray(p_values, dtype=np.float64)
    out = np.full(p.shape, np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    m = len(order)
    ratios = p[order] * m / np.arange(1, m + 1)
    out[order] = np.minimum(np.minimum.accumulate(ratios[::-1])[::-1], 1.0)
    return out
