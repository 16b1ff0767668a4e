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

from unpooled._warned import warn
from unpooled._wording import joined
from unpooled.exact.shrinkage import Blocks, shrinkage
from unpooled.exact.site import Site
from unpooled.kernels.arrays import Array, Arrays, Float
from unpooled.losses.base import FAR, LinearLoss
from unpooled.problem import BoundProblem

STEPS = 200
ROUNDING = 4.0 * float(np.finfo(np.float64).eps)  # of an intercept: a step this small is the last


@np.errstate(over="ignore", invalid="ignore")
def fitted(loss: LinearLoss, Z: Float, y: Float, share: Float) -> Float:
    """a (C,), which makes Σ_i share_i ℓ(z_i + a, y_i) least; beyond FAR where no finite one does.

    A site whose labels are all alike has an infinite one, at which its rows say nothing about w.
    """
    if not share.any():
        return np.zeros(Z.shape[1])
    Z, y, share = Z[share > 0.0], y[share > 0.0], share[share > 0.0] / share.sum()
    closed = loss.intercept(Z, y, share)
    return np.array([_root(loss, Z, y, share)]) if closed is None else closed


def reported(a: Float, Z: Float, share: Float) -> Float:
    """An intercept as a site tells it: ±inf where it is as good as that."""
    reach = FAR + float(np.abs(Z[share > 0.0]).max(initial=0.0))
    return np.where(np.abs(a) >= reach, np.copysign(np.inf, a), a)


def held_out_intercept(problem: BoundProblem, loss: LinearLoss, site: Site, w: Float, pooled: Float) -> Float:
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
    labels, parts = loss.mean_rows(pooled)
    Z = np.concatenate([Z, np.tile(center, (len(parts), 1))])
    return fitted(loss, Z, np.append(y, labels), np.append(share, half * parts))


def pooled_mean(problem: BoundProblem, moments: Arrays) -> Float:
    """The mean target (C,) over all rows, with half a row of margin zero where a mean may not be 0 or 1."""
    loss, mean = problem.linear, moments["mean_t"]
    if loss is None or not loss.offers("mean") or loss.is_least_squares:
        return mean
    n, at_zero = int(moments["rows"]), loss.mean(np.zeros((1, len(mean))))
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


def _root(loss: LinearLoss, Z: Float, y: Float, share: Float) -> float:
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
        if loss.offers("second_derivative"):
            curvature = float(share @ loss.second_derivative(Z + a, y)[:, 0])
            step = a - g / curvature if curvature > 0.0 else newton
            newton = step if low < step < high else newton
        if g == 0.0 or newton in (a, low, high):
            break
        near = abs(newton - a) <= ROUNDING * (1.0 + abs(a))
        a = newton
        if near:
            break
    return a
