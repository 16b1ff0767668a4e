"""A client's own intercept, profiled out at the client.

With an intercept for every site, the intercept of site k concerns nobody else, so the site keeps it:

    f_k(w) = min over a   Σ_i s_i ℓ(x_i·w + a, y_i),        a_k(w) the minimiser.

By the envelope theorem ∇f_k is the gradient in w at (w, a_k(w)), and the Hessian is that of w less what the
intercept explains (a Schur complement). These are sums over rows like any other, so solvers need to know
nothing, and the server never learns an intercept. Residuals sum to zero at every site, which is what a
dual point has to satisfy: certificates hold as they are.

A column that is constant at a site (a school's mean, a hospital's type) is taken up by its intercept: f_k
does not depend on that coefficient. The site's answers about it are set to exact zeros, since rounding in
their place, inverted, makes estimates of 10¹³.
"""

from __future__ import annotations

import numpy as np

from unpooled.algorithms.exact.shrinkage import Blocks, shrinkage
from unpooled.algorithms.exact.site import Site
from unpooled.arrays import Array, Arrays, Float
from unpooled.losses import Logistic, Poisson, Softmax, Squared
from unpooled.losses.rowwise import Rowwise, rowwise
from unpooled.problem import BoundProblem
from unpooled.warned import warn
from unpooled.wording import joined

FAR = 1000.0  # beyond the largest margin, an intercept as good as infinite
STEPS = 200
ROUNDING = 4.0 * float(np.finfo(np.float64).eps)  # of an intercept: a step this small is the last


@np.errstate(over="ignore", invalid="ignore")
def fitted(loss: Rowwise, Z: Float, y: Float, share: Float) -> Float:
    """a (C,), which makes Σ_i share_i ℓ(z_i + a, y_i) least; beyond FAR where no finite one does.

    A site whose labels are all alike has an infinite one, at which its rows say nothing about w.
    """
    if not share.any():
        return np.zeros(Z.shape[1])
    Z, y, share = Z[share > 0.0], y[share > 0.0], share[share > 0.0] / share.sum()
    if isinstance(loss.loss, Squared):
        return np.array([share @ (y - Z[:, 0])])
    if isinstance(loss.loss, Softmax):
        return _classes(loss, Z, y, share)
    if isinstance(loss.loss, Poisson):
        top, mean = float(Z.max()), float(share @ y)
        if mean == 0.0:
            return np.array([-FAR - float(np.abs(Z).max())])
        return np.array([np.log(mean) - np.log(share @ np.exp(Z[:, 0] - top)) - top])
    return np.array([_root(loss, Z, y, share)])


def reported(a: Float, Z: Float, share: Float) -> Float:
    """An intercept as a site tells it: ±inf where it is as good as that."""
    reach = FAR + float(np.abs(Z[share > 0.0]).max(initial=0.0))
    return np.where(np.abs(a) >= reach, np.copysign(np.inf, a), a)


def held_out_intercept(problem: BoundProblem, loss: Rowwise, site: Site, w: Float, pooled: Float) -> Float:
    """The intercept (C,) by which rows left out are predicted: that of the site's other rows, if finite.

    Where it is not (one class, counts of zero only), half a row is added to them, whose margin is their mean
    and whose target is the ``pooled`` mean; a site that has no other rows gets that row alone, with the mean
    margin of the rows left out. Infinite intercepts would make a single row's loss that of all.
    """
    assert site.rest is not None
    Z, y, share = site.rest.margins(w, problem.layout.n_outputs), site.rest.y, site.rest.share
    if share.any():
        a = fitted(loss, Z, y, share)
        if np.isfinite(reported(a, Z, share)).all():
            return a
        center, half = share @ Z / share.sum(), 0.5 * float(share[share > 0.0].mean())
    else:
        center, half = site.share @ site.margins(w, problem.layout.n_outputs) / (site.share.sum() or 1.0), 0.5
    labels, parts = pooled, np.ones(1)
    if isinstance(loss.loss, Logistic):
        labels, parts = np.array([1.0, 0.0]), np.append(pooled, 1.0 - pooled)
    elif isinstance(loss.loss, Softmax):
        labels, parts = np.arange(len(pooled), dtype=np.float64), pooled
    Z = np.concatenate([Z, np.tile(center, (len(parts), 1))])
    return fitted(loss, Z, np.append(y, labels), np.append(share, half * parts))


def pooled_mean(problem: BoundProblem, moments: Arrays) -> Float:
    """The mean target (C,) over all rows, with half a row of margin zero where a mean may not be 0 or 1."""
    loss, mean = rowwise(problem.problem.loss), moments["mean_t"]
    if loss is None or not loss.is_canonical or isinstance(loss.loss, Squared):
        return mean
    at_zero = loss.residuals(np.zeros((1, len(mean))), np.zeros(1)) + loss.targets(np.zeros(1), len(mean))
    n = int(moments["rows"])
    return np.asarray((n * mean + 0.5 * at_zero[0]) / (n + 0.5))


def within_vector(problem: BoundProblem, site: Site, flat: Float) -> Float:
    """A gradient, with exact zeros for the columns that are constant at a site with its own intercept."""
    if not problem.problem.has_site_intercepts:
        return flat
    out = flat.copy()
    out.reshape(-1, len(site.constant))[:, site.constant] = 0.0
    return out


def within_matrix(problem: BoundProblem, site: Site, coordinates: Array, H: Float) -> Float:
    """The same of a matrix over coordinates of the flat vector."""
    if not problem.problem.has_site_intercepts:
        return H
    constant = site.constant[coordinates % len(site.constant)]
    return np.where(constant[:, None] | constant, 0.0, H)


def absorbed(problem: BoundProblem, w: Float, gradient: Float, names: tuple[str, ...] | None) -> list[str]:
    """A note, and a warning, on columns without a penalty that are constant, or so within every site.

    Sites answer exact zeros for them, so coefficient and gradient have stayed at exactly zero.
    """
    h, of_sites, n = shrinkage(problem), problem.problem.has_site_intercepts, problem.layout.n_coefficients
    told = (w[:n] != 0.0) | (gradient[:n] != 0.0)
    if not (of_sites or problem.layout.n_intercepts) or not isinstance(h, Blocks) or not told.any():
        return []
    told[np.setdiff1d(np.arange(n), h.free)] = True
    columns = np.flatnonzero(~told.reshape(problem.layout.n_outputs, -1).any(axis=0))
    if not columns.size:
        return []
    listed = joined([repr(names[j]) if names else str(j) for j in columns])
    word, be, so, them = ("column", "is", "its coefficient is 0", "it")
    if columns.size > 1:
        word, be, so, them = ("columns", "are", "their coefficients are 0", "them")
    why = f"constant: the intercept takes up any effect, so {so}; leave the {word} out."
    if of_sites:
        why = (
            f"constant within every site: the sites' intercepts take up any effect, so {so}. To estimate "
            f"{them}, give all sites one intercept (intercept=True; site_intercepts=False); otherwise leave "
            f"the {word} out."
        )
    free = ", left unpenalised," if len(h.free) < n else ""  # where nothing is penalised, nothing is left so
    note = f"{word} {listed}{free} {be} {why}"
    warn(note)
    return [note]


def _root(loss: Rowwise, Z: Float, y: Float, share: Float) -> float:
    """The root of Σ_i share_i ℓ'(z_i + a), which rises with a: Newton's method in a bracket."""

    def slope(a: float) -> float:
        return float(share @ loss.residuals(Z + a, y)[:, 0])

    reach = FAR + float(np.abs(Z).max())
    for end in (-reach, reach):  # nowhere does the slope have the sign that a root needs at this end
        if slope(end) * end <= 0.0:
            return end
    low, high, width = 0.0, 0.0, 1.0
    while slope(low) > 0.0 and low > -reach:
        high, low, width = low, max(low - width, -reach), 2.0 * width
    while slope(high) < 0.0 and high < reach:
        low, high, width = high, min(high + width, reach), 2.0 * width
    a = 0.5 * (low + high)
    for _ in range(STEPS):
        g = slope(a)
        if g > 0.0:
            high = a
        else:
            low = a
        newton = 0.5 * (low + high)
        if loss.is_curved:
            curvature = float(share @ loss.curvature(Z + a, y)[:, 0])
            step = a - g / curvature if curvature > 0.0 else newton
            newton = step if low < step < high else newton
        if g == 0.0 or newton in (a, low, high):
            break
        near = abs(newton - a) <= ROUNDING * (1.0 + abs(a))
        a = newton
        if near:
            break
    return a


def _classes(loss: Rowwise, Z: Float, y: Float, share: Float) -> Float:
    """Softmax: damped Newton over the classes that the site has; their sum is zero."""
    C = Z.shape[1]
    t = share @ loss.targets(y, C)
    present = np.flatnonzero(t > 0.0)
    a = np.full(C, -FAR - 2.0 * float(np.abs(Z).max()))
    a[present] = 0.0
    value = float(share @ loss.values(Z + a, y))  # type: ignore[attr-defined]  # Softmax has values
    for _ in range(STEPS):
        P = loss.curvature(Z + a, y)[:, present]
        g = share @ P - t[present]
        H = np.diag(share @ P) - P.T @ (share[:, None] * P)
        d = -np.linalg.lstsq(H, g, rcond=1e-12)[0]
        size, done = 1.0, False
        while True:
            new = a.copy()
            new[present] += size * d
            lower = float(share @ loss.values(Z + new, y))  # type: ignore[attr-defined]
            if lower <= value + 1e-4 * size * float(g @ d) + 1e-15 * (1.0 + abs(value)):
                break
            size *= 0.5
            if size < 1e-8:
                done = True
                break
        if done:
            break
        a, value = new, lower
        if float(np.abs(d).max()) <= 1e-15 * (1.0 + float(np.abs(a[present]).max())):
            break
        if float(np.abs(g).max()) <= 1e-16:
            break
    a[present] -= a[present].mean()
    return a
