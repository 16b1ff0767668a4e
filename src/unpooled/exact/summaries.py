"""What a site says about its columns: how much was observed, the mean, and the squares about it.

A mean of 10⁶ with a spread of 1 has ten digits too few in one float to tell how two sites differ. So a mean
goes as an anchor near it and the offset from there: differences of both keep all digits.

    observed   Σ share over the rows without a missing value          (p,)
    anchor     a number near the mean                                 (p,)
    offset     Σ share (x − anchor) / observed                        (p,)
    squares    Σ share (x − mean)²                                    (p,)
    missing    how many values are missing                            (p,)
"""

from __future__ import annotations

import numpy as np

from unpooled._validation import blocks, is_sparse
from unpooled.exact.site import Site
from unpooled.kernels.arrays import Array, Arrays, Float


def summary(site: Site) -> Arrays:
    """The site's summary of every column; rows are gone through twice, block by block.

    Squares of huge values are infinite: whoever merges the summaries says whose.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return _sparse(site) if is_sparse(site.X) else _dense(site)


def _dense(site: Site) -> Arrays:
    n, p = site.X.shape
    total, observed, missing = np.zeros(p), np.zeros(p), np.zeros(p, dtype=np.int64)
    for part in blocks(n, p):
        X, share = np.asarray(site.X[part], dtype=np.float64), site.share[part]
        gone = np.isnan(X)
        missing += gone.sum(axis=0)
        total += share @ np.where(gone, 0.0, X)
        observed += share @ ~gone
    anchor = _mean(total, observed)
    first, second = np.zeros(p), np.zeros(p)
    for part in blocks(n, p):
        D = np.asarray(site.X[part], dtype=np.float64) - anchor
        D[np.isnan(D)] = 0.0
        first += site.share[part] @ D
        second += site.share[part] @ np.square(D)
    return _named(observed, anchor, first, second, missing)


def _sparse(site: Site) -> Arrays:
    """The same from the stored values; the others are zeros, and are only counted."""
    X, p = site.X, site.X.shape[1]
    column, x = X.indices, X.data.astype(np.float64)
    share = np.repeat(site.share, np.diff(X.indptr))
    gone = np.isnan(x)
    missing = np.bincount(column[gone], minlength=p)
    lost = np.bincount(column[gone], share[gone], p)
    observed = np.asarray(site.share.sum() - lost)
    observed[missing == site.n_rows] = 0.0
    column, x, share = column[~gone], x[~gone], share[~gone]
    zeros = site.n_rows - missing - np.bincount(column, minlength=p)
    # exactly zero where every value is stored, lest rounding be taken for a row at a distance of the mean
    of_zeros = np.where(zeros > 0, np.maximum(observed - np.bincount(column, share, p), 0.0), 0.0)
    anchor = _mean(np.asarray(np.bincount(column, share * x, p), dtype=np.float64), observed)
    d = x - anchor[column]
    first = np.bincount(column, share * d, p) - of_zeros * anchor
    second = np.bincount(column, share * np.square(d), p) + of_zeros * np.square(anchor)
    return _named(observed, anchor, first, second, missing)


def _mean(total: Float, weight: Float) -> Float:
    return np.asarray(total / np.where(weight > 0.0, weight, 1.0))


def _named(observed: Float, anchor: Float, first: Float, second: Float, missing: Array) -> Arrays:
    offset = _mean(first, observed)
    squares = np.maximum(second - observed * np.square(offset), 0.0)
    squares[np.isinf(second)] = np.inf
    return {
        "observed": observed,
        "anchor": anchor,
        "offset": offset,
        "squares": squares,
        "missing": missing,
    }
