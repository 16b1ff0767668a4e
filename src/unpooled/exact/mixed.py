"""Curvature where some sites keep theirs: what the others sent, the whole diagonal, and what gradients show.

A site with few rows sends no Gram matrix and no Hessian, a site with rare values leaves their columns out;
both send their part of the diagonal. ``completed`` makes a first matrix of that. Every evaluated point then
shows how the gradient of all rows changes, and ``learnt`` corrects the matrix by it. Steps with such a matrix
need a few more rounds than Newton's. Loss and gradient are those of all rows, so the optimum and its proof
are the same.
"""

from __future__ import annotations

import numpy as np

from unpooled.kernels.arrays import Arrays, Float

MOST = 4.0  # the largest factor by which the part of a column that was sent is blown up
ROUNDING = 1e-10  # directions whose curvature is below this part of the largest are left alone


def completed(sent: Float, missing: Float) -> Float:
    """E·sent·E with E_j² = (sent_jj + missing_j)/sent_jj ≤ MOST, and the whole diagonal on the diagonal.

    The correlations of the rows that were sent stand for those of all.
    """
    own = np.diag(sent)
    ratio = (own + missing) / np.where(own > 0.0, own, 1.0)
    E = np.sqrt(np.where(own > 0.0, np.minimum(ratio, MOST), 0.0))
    matrix = E[:, None] * sent * E
    matrix[np.diag_indices(len(own))] = own + missing
    return np.asarray(matrix)


def completed_gram(sent: Float, total: Arrays, centred: bool) -> Float:
    """The same for a Gram matrix; rows less their mean where there is an intercept, the mean added again."""
    missing = total["diagonal"]
    if not centred:
        return completed(sent, missing)
    x, weight = total["mean_x"], 1.0 - float(total["hidden_weight"])
    own = x - total["hidden_x"]
    spread = sent - np.multiply.outer(own, own) / weight if weight > 0.0 else np.zeros_like(sent)
    whole = np.maximum(np.diag(sent) + missing - np.square(x), 0.0)
    return completed(spread, np.maximum(whole - np.diag(spread), 0.0)) + np.multiply.outer(x, x)


def learnt(H: Float, S: Float, Y: Float) -> Float:
    """The matrix that takes the steps S (m, n) to the changes Y of the gradient, and is H elsewhere:

        H − HSᵀ(SHSᵀ)⁻¹SH + Yᵀ(SYᵀ)⁻¹Y          (BFGS, several steps at a time),

    exact along S for a quadratic loss, positive semi-definite where H is.
    """
    size = np.sqrt(np.maximum(np.sum(S * Y, axis=1), 0.0))
    kept = size > 0.0
    if not kept.any():
        return H
    S, Y = S[kept] / size[kept, None], Y[kept] / size[kept, None]
    B = S @ Y.T
    values, vectors = np.linalg.eigh(0.5 * (B + B.T))
    good = values > ROUNDING * values[-1]
    values, V = values[good], vectors[:, good].T
    S, Y = V @ S, V @ Y
    HS = S @ H
    A = HS @ S.T
    A[np.diag_indices(len(A))] *= 1.0 + 1e-12
    A[np.diag_indices(len(A))] += 1e-300
    try:
        removed = HS.T @ np.linalg.solve(A, HS)
    except np.linalg.LinAlgError:
        return H
    return np.asarray(H - 0.5 * (removed + removed.T) + (Y.T / values) @ Y)
