"""The client's part of every exact solver: an oracle of sums, with a small vocabulary.

A question is a dictionary of named arrays; what it holds says what is asked:

    features, center    moments: the means of x, t, x·t and y² (t the targets of the loss, x and y less
                        ``center`` where it is given), and the Gram matrix Σ share x xᵀ of these features
    w                   the loss and its gradient at w
    w, working          and the Hessian on these coordinates of the flat vector
    w, working, squares and Σ share u² x xᵀ on them, u = dℓ/dz: the noise of the gradient, for inference
    base, tilt          Σ share ℓ*(u') and Σ share x u' for u' = ℓ' + ℓ''·(x·tilt), the derivatives at base
    origin              and all of this for the rows x − origin
    models, pooled      the loss at each of several points, the rows of this array; for sites' own intercepts
                        also the pooled mean of the targets
    curvature           upper bounds of the curvature of this client's loss: in w, in the intercept, and in
                        each column (``diagonal``) where the penalty allows a unit for each

Where every site has an intercept of its own, the losses are minima over it (``site_intercept``) and moments
are those of rows less their means at the site.

Answers are weighted with the rows' shares, so Σ_k π_k of them is the mean over all rows: an engine needs no
other arithmetic, and neither does secure aggregation. Numbers of a whole type are counts, and are added.

Of the Gram matrix and the Hessian, the columns stay here that could give a row away, all of them where there
are few rows; of these the diagonal is sent, and one of two counts says why.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unpooled._validation import blocks, is_sparse
from unpooled.exact.shrinkage import Blocks, shrinkage
from unpooled.exact.site import FLAT, Site, packed
from unpooled.exact.site_intercept import (
    fitted,
    held_out_intercept,
    within_matrix,
    within_vector,
)
from unpooled.kernels.arrays import Array, Arrays, Float
from unpooled.kernels.linalg.lanczos import fixed_direction, largest_eigenvalue
from unpooled.losses.base import LinearLoss
from unpooled.losses.plain import with_ones
from unpooled.problem import BoundProblem

MARGIN = 1.02  # of a curvature bound found by power iteration, which comes from below
NONE = np.empty(0, dtype=np.int64)
EXACT_BELOW = 600  # features up to which the curvature bound is a true eigenvalue


def answer(problem: BoundProblem, site: Site, question: Arrays, min_rows: int) -> Arrays:
    """One client's answer."""
    up: Arrays = {}
    if "origin" in question:
        site = site.less(question["origin"])
    names = [name for name in ("features", "working") if name in question]
    columns = np.unique(np.concatenate([NONE, *(site_columns(problem, question[n]) for n in names)]))
    hidden = hidden_columns(site, columns, min_rows)
    if columns.size:
        few_rows = site.n_rows < min_rows
        few_values = not few_rows and bool(hidden.any())
        up |= {"refused_rows": np.array(int(few_rows)), "refused_columns": np.array(int(few_values))}
    if "features" in question:
        up |= moments(problem, site, question["features"], question.get("center"), hidden)
    if "w" in question:
        up |= evaluated(problem, site, question, hidden)
    if "tilt" in question:
        up |= tilted(problem, site, question["base"], question["tilt"])
    if "models" in question:
        pooled = question.get("pooled")
        up["losses"] = np.array([held_out_loss(problem, site, w, pooled) for w in question["models"]])
    if "curvature" in question and problem.linear is not None:
        up |= curvature(problem, site)
    return up


def site_columns(problem: BoundProblem, coordinates: Array) -> Array:
    """The columns of X behind coordinates of the flat vector; intercepts have none."""
    coordinates = coordinates[coordinates < problem.layout.n_coefficients]
    return coordinates % (problem.layout.n_coefficients // problem.layout.n_outputs)


def hidden_columns(site: Site, columns: Array, min_rows: int) -> Array:
    """Which columns (p,) of X stay out of matrices: all where rows are few, else the rare of ``columns``."""
    found = np.zeros(site.X.shape[1], dtype=bool)
    if columns.size and site.n_rows < min_rows:
        found[:] = True
    elif columns.size:
        found[columns] = rare(site, columns, min_rows)
    return found


def rare(site: Site, columns: Array, min_rows: int) -> Array:
    """In which columns fewer than ``min_rows`` rows stand out from the rest.

    Rows stand out where they are not zero, or where they differ from a value that most others share; such a
    value is the median of any 2·min_rows rows. A column in which no row stands out tells nothing of any.
    """
    n, X = site.n_rows, site.X
    found = np.zeros(len(columns), dtype=bool)
    looked_at = np.arange(len(columns))
    if is_sparse(X):
        filled = np.bincount(X.indices[X.data != 0], minlength=X.shape[1])[columns]
        found = (filled > 0) & (filled < min_rows)
        looked_at = np.flatnonzero(~found & (filled > n - min_rows))
        X, columns = X[:, columns[looked_at]].toarray(), np.arange(len(looked_at))  # these are nearly dense
    for part in blocks(len(columns), n):
        A = np.asarray(X[:, columns[part]])
        filled = np.count_nonzero(A, axis=0)
        common = np.sort(A[: 2 * min_rows + 1], axis=0)[min(n, 2 * min_rows + 1) // 2]
        apart = np.count_nonzero(common != A, axis=0)
        few = (filled > 0) & (filled < min_rows)
        found[looked_at[part]] = few | ((apart > 0) & (apart < min(min_rows, n / 2)))
    return found


def shared(name: str, matrix: Float, hide: Array) -> Arrays:
    """A symmetric matrix without the rows and columns that stay here; of these, the diagonal."""
    if not hide.any():
        return {name: packed(matrix)}
    diagonal = np.where(hide, np.diag(matrix), 0.0)
    if hide.all():
        return {"diagonal": diagonal}
    kept = np.where(hide[:, None] | hide[None, :], 0.0, matrix)
    return {name: packed(kept), "diagonal": diagonal}


def moments(
    problem: BoundProblem, site: Site, features: Array, center: Float | None, hidden: Array
) -> Arrays:
    """Means over the rows, and the Gram matrix of ``features``."""
    p = site.X.shape[1]
    loss, of_y = problem.linear, 0.0
    if problem.problem.has_site_intercepts:
        of_y = float(site.share @ site.y) if loss is not None and loss.is_least_squares else 0.0
        center = np.append(site.X.T @ site.share, of_y) / (site.share.sum() or 1.0)
    y = site.y if center is None else site.y - center[p]
    T = y[:, None] if loss is None else loss.targets(y, problem.layout.n_outputs)
    weight = float(site.share.sum())
    mean_x, mean_t = site.X.T @ site.share, site.share @ T
    xt = site.pull_back(T, intercept=False)
    if center is not None:
        mean_x = mean_x - weight * center[:p]
        xt = xt - np.multiply.outer(mean_t, center[:p]).ravel()
    up: Arrays = {
        "mean_x": np.asarray(mean_x, dtype=np.float64),
        "mean_t": mean_t + of_y,  # not less the site's own: what a site without an intercept is predicted by
        "mean_xt": within_vector(problem, site, xt),
        "mean_yy": np.array(site.share @ np.square(y)),
        "floor": np.array(0.0 if loss is None else site.share @ loss.floor(site.y)),
        "rows": np.array(site.n_rows),
    }
    if features.size:
        shift, hide = None if center is None else center[features], hidden[features]
        gram = site.gram(features, site.share, shift)
        up |= shared("gram", within_matrix(problem, site, features, gram), hide)
        if hide.any():
            up["hidden_x"] = np.where(hide, up["mean_x"][features], 0.0)
            up["hidden_weight"] = np.array(weight if hide.all() else 0.0)
    return up


def evaluated(problem: BoundProblem, site: Site, question: Arrays, hidden: Array) -> Arrays:
    """The loss and its gradient at w, and the Hessian on the working set; the squares for one output."""
    layout, loss = problem.layout, problem.linear
    working = question.get("working", NONE)
    if loss is None:
        return _plain(problem, site, question["w"])
    with np.errstate(over="ignore", invalid="ignore"):
        Z = _margins(problem, site, loss, question["w"])
        U = loss.residuals(Z, site.y)
        gradient = site.pull_back(U, layout.n_intercepts > 0)
        up: Arrays = {
            "loss": np.array(loss.total(Z, site.y, site.share)),
            "gradient": within_vector(problem, site, gradient),
        }
        if working.size:
            is_intercept = working >= layout.n_coefficients
            hide = np.where(is_intercept, hidden.all(), hidden[working % site.X.shape[1]])
            H = _hessian(problem, site, working, loss.second_derivative(Z, site.y))
            up |= shared("hessian", within_matrix(problem, site, working, H), hide)
            if "squares" in question and not hide.any():
                up["squares"] = packed(site.gram(working, site.share * np.square(U[:, 0])))
    return up


def _margins(problem: BoundProblem, site: Site, loss: LinearLoss, w: Float) -> Float:
    """Z at w, a site's own intercept included."""
    Z = site.margins(w, problem.layout.n_outputs)
    return Z + fitted(loss, Z, site.y, site.share) if problem.problem.has_site_intercepts else Z


def tilted(problem: BoundProblem, site: Site, base: Float, tilt: Float) -> Arrays:
    """Σ share ℓ*(u') and Σ share x u' for the dual point u' = u + ℓ''·(x·tilt), u = ℓ' at ``base``.

    With the Hessian H of all rows, Σ share x u' = G + H·tilt: a server that knows H makes it what it wants.
    Site intercepts stay profiled out: Σ share u' = 0 at the site.
    """
    layout, loss = problem.layout, problem.linear
    assert loss is not None
    Z = _margins(problem, site, loss, base)
    D = site.margins(tilt, layout.n_outputs)
    P = loss.second_derivative(Z, site.y)
    if layout.n_outputs > 1:
        if problem.problem.has_site_intercepts:
            S = np.diag(site.share @ P) - P.T @ (site.share[:, None] * P)
            D = D - np.linalg.lstsq(S, site.share @ (P * D - P * np.sum(P * D, axis=1, keepdims=True)))[0]
        V = P * (D - np.sum(P * D, axis=1, keepdims=True))
    else:
        weight = site.share * P[:, 0]
        if problem.problem.has_site_intercepts and weight.sum() > 0.0:
            D = D - weight @ D / weight.sum()
        V = P * D
    U = loss.residuals(Z, site.y) + V
    return {
        "dual_gradient": within_vector(problem, site, site.pull_back(U, layout.n_intercepts > 0)),
        "conjugate": np.array(site.share @ loss.conjugate(U, site.y)),
    }


def held_out_loss(problem: BoundProblem, site: Site, w: Float, pooled: Float | None) -> float:
    """The loss at w of rows left out; a site's own intercept is that of ``held_out_intercept``."""
    loss = problem.linear
    if loss is None or pooled is None:
        return float(evaluated(problem, site, {"w": w}, np.zeros(site.X.shape[1], dtype=bool))["loss"])
    with np.errstate(over="ignore", invalid="ignore"):
        a = held_out_intercept(problem, loss, site, w, pooled)
        return loss.total(site.margins(w, problem.layout.n_outputs) + a, site.y, site.share)


def _hessian(problem: BoundProblem, site: Site, working: Array, P: Float) -> Float:
    """Σ_i share_i (d²ℓ/dz²)_{cc'} x_j x_j' over the coordinates (c, j) of the working set."""
    p, n_outputs = site.X.shape[1], problem.layout.n_outputs
    if problem.problem.has_site_intercepts and n_outputs > 1:
        return _without_intercepts(problem, site, working, P)
    is_intercept = working >= n_outputs * p
    column = np.where(is_intercept, p, working % p)
    output = np.where(is_intercept, working - n_outputs * p, working // p)
    if n_outputs == 1:
        weight = site.share * P[:, 0]
        own = problem.problem.has_site_intercepts and weight.sum() > 0.0
        return site.gram(column, weight, site.totals(weight)[column] / weight.sum() if own else None)
    return _of_classes(problem, site, column, output, P)


def _without_intercepts(problem: BoundProblem, site: Site, working: Array, P: Float) -> Float:
    """The Schur complement of the site's intercepts, one a class; a number added to all changes nothing."""
    p, n, C = site.X.shape[1], len(working), problem.layout.n_outputs
    column = np.append(working % p, np.full(C, p))
    H = _of_classes(problem, site, column, np.append(working // p, np.arange(C)), P)
    return np.asarray(H[:n, :n] - H[:n, n:] @ np.linalg.pinv(H[n:, n:], rcond=1e-12) @ H[n:, :n])


def _of_classes(problem: BoundProblem, site: Site, column: Array, output: Array, P: Float) -> Float:
    """Softmax: the coordinates (c, j) by their columns j of [X, 1] and outputs c."""
    n_outputs, working = problem.layout.n_outputs, column
    H = np.zeros((len(working), len(working)))
    for c in range(n_outputs):
        own = np.flatnonzero(output == c)
        if own.size:
            H[np.ix_(own, own)] = site.gram(column[own], site.share * P[:, c])
    needed, place = np.unique(column, return_inverse=True)
    for part, A in site.blocks_of(needed, len(working)):
        B = A[:, place] * P[part][:, output] * np.sqrt(site.share[part, None])
        H -= B.T @ B
    return H


def curvature(problem: BoundProblem, site: Site) -> Arrays:
    """Bounds of the curvature, from G = Σ_i share_i c_i x_i x_iᵀ, c_i the loss's bound of its own.

    ``curvature``: λ_max of G, the rows less their mean where there is an intercept, and Σ_i share_i c_i, the
    intercept's. How the means of clients differ is left out. Where the penalty allows a unit for each column,
    ``diagonal``, that of G (less the mean for site intercepts), with the number of rows that it is about, and
    λ_max is that with a unit diagonal.
    """
    c = np.asarray(problem.problem.loss.curvature(site.y), dtype=np.float64) * site.share
    X, own = site.X, problem.problem.has_site_intercepts
    free, total = problem.layout.n_intercepts > 0 or own, float(c.sum())
    mean = np.asarray(X.T @ c) / total if free and total > 0.0 else np.zeros(X.shape[1])
    up: Arrays = {}
    units = np.ones(X.shape[1])
    if isinstance(shrinkage(problem), Blocks):
        squares = np.asarray((X.multiply(X) if is_sparse(X) else np.square(X)).T @ c, dtype=np.float64)
        spread = np.maximum(squares - total * np.square(mean), 0.0)
        units = np.sqrt(np.where(spread > FLAT * squares, spread, np.inf))
        up |= {"diagonal": spread if own else squares, "diagonal_rows": np.array(site.n_rows)}

    def product(u: Float) -> Array:
        z = X @ (u / units) - mean @ (u / units)
        return np.asarray(X.T @ (c * z) - mean * (c @ z)) / units

    if X.shape[1] <= EXACT_BELOW:
        G = site.gram(np.arange(X.shape[1]), c, mean if free else None) / np.multiply.outer(units, units)
        largest = float(np.linalg.eigvalsh(G)[-1])
    else:
        largest = MARGIN * largest_eigenvalue(product, fixed_direction(X.shape[1]), 100)
    return up | {"curvature": np.array([largest, total])}


def _plain(problem: BoundProblem, site: Site, w: Float) -> Arrays:
    """For a user's loss in NumPy: its mean over the rows, times their weight."""
    loss: Any = problem.problem.loss
    weight = float(site.share.sum())
    extra = (site.share * (site.n_rows / weight),) if site.is_weighted else ()
    ones = problem.layout.n_intercepts > 0
    shape = problem.layout.shape
    at = w if ones else w.reshape(shape)
    X = with_ones(site.X) if ones else site.X
    if len(shape) > 1 and not ones:
        X = X.reshape(site.n_rows, *shape)
    value = float(loss.value(at, X, site.y, *extra))
    gradient = np.asarray(loss.gradient(at, X, site.y, *extra), dtype=np.float64).ravel()
    return {"loss": np.array(weight * value), "gradient": weight * gradient}
