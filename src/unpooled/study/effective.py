"""How many rows a statistic rests on: those with a weight worth speaking of.

A gradient is Σ_i u_i x_i with u_i = dℓ/dz at row i, a Hessian Σ_i c_i x_i x_iᵀ with c_i = d²ℓ/dz². At a point
with huge coefficients nearly all u_i or c_i can vanish, and the sum is one row; two such points can differ in
the u_i of a single row. A row counts where its weight is at least ``SHARE`` of the largest, and no row may
have more than ``MOST`` of all the weight.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from unpooled.exact.site import Site
from unpooled.exact.site_intercept import fitted
from unpooled.kernels.arrays import Array, Arrays, Float
from unpooled.losses.base import LinearLoss
from unpooled.problem import BoundProblem

SHARE = 0.01
MOST = 0.8
ROUNDING = 1e-13  # of a weight: a smaller difference of two is none
BYTES = 16 * 2**20  # of the points that are remembered
FEWEST, MOST_POINTS = 64, 1000  # of them, whatever their size


class Point(NamedTuple):
    """What the rows weigh at a point, in the gradient and in the Hessian where it is asked: (C, n) each.

    ``is_steep``: whether some rows count for less than ``SHARE`` in the Hessian, of the others or of those at
    zero. Between two points that are not, residuals differ as x·(w − w') does, and columns in which few rows
    stand out are not in a study.
    """

    residuals: Float
    curvature: Float | None
    is_steep: bool
    jumps: bool

    @property
    def weights(self) -> list[Float]:
        """One vector for each sum over rows."""
        return [*self.residuals, *([] if self.curvature is None else self.curvature)]


def few_carry(weight: Float, least: int) -> Array:
    """Whether fewer than ``least`` rows carry the weight (n, …), or half of the rows where that is less."""
    weight = np.abs(weight)
    n, top = len(weight), weight.max(axis=0, initial=0.0)
    with np.errstate(invalid="ignore"):
        few = np.count_nonzero(weight >= SHARE * top, axis=0) < min(least, n / 2)
        few = few | (top > MOST * weight.sum(axis=0))
    # an infinite sum says nothing of any row
    return np.asarray(few & (top > 0.0) & np.isfinite(top) & (least > 1))


def half_of(least: int) -> int:
    """How many rows are enough in a fold, and without it, where ``least`` are in all rows."""
    return min(least, max(3, -(-least // 2)))


def point_of(problem: BoundProblem, site: Site, question: Arrays, w: Float, asked: Array) -> Point:
    """The weights of a site's rows at w, of which the question is about those ``asked`` (a mask).

    Rows lose the question's ``origin`` before they meet w; a ``tilt`` adds c_i·(x_i·tilt) to the u_i.
    """
    loss = problem.linear
    assert loss is not None  # a study has the library's losses
    origin, tilt = question.get("origin"), question.get("tilt")
    with np.errstate(over="ignore", invalid="ignore"):
        Z = _margins(problem, site, w, origin)
        if problem.problem.has_site_intercepts:
            Z = Z + fitted(loss, Z[asked], site.y[asked], site.share[asked])
        U, P, flat = loss.residuals(Z, site.y), _bend(loss, Z, site.y), _bend(loss, np.zeros_like(Z), site.y)
        is_steep = not bool((P.min(axis=0) > SHARE * np.maximum(P, flat).max(axis=0)).all())
        if tilt is not None:
            U = U + P * _margins(problem, site, tilt, origin)
        U, P = (site.share * a.T for a in (U, P))
    second_order = "working" in question or tilt is not None
    return Point(U, P if second_order else None, is_steep, not loss.is_smooth)


def _bend(loss: LinearLoss, Z: Float, y: Float) -> Float:
    """d²ℓ/dz² of every output."""
    P = loss.second_derivative(Z, y)
    return P * (1.0 - P) if P.shape[1] > 1 else P


def _margins(problem: BoundProblem, site: Site, w: Float, origin: Float | None) -> Float:
    layout = problem.layout
    Z = site.margins(w, layout.n_outputs)
    return Z if origin is None else Z - w[: layout.n_coefficients].reshape(layout.n_outputs, -1) @ origin


class Seen:
    """The points that a site was asked at; ``isolates`` holds a new one against them.

    Two are compared where one is steep. Where the curvature ``jumps``, two Hessians differ in few rows by
    nature; their residuals are compared all the same.
    """

    def __init__(self, least: int):
        self.least = least
        self.steep, self.gentle = Remembered(), Remembered()

    def isolates(self, point: Point, asked: Array, drawn: float = 1.0) -> str | None:
        """Whether the point, or what differs between it and an earlier one, rests on too few rows: how.

        ``drawn`` is the share of the rows that minibatches have.
        """
        least = math.ceil(self.least / drawn) if asked.all() else half_of(self.least)
        for weight in point.weights:
            # an answer about all rows, less one about some, is about the others
            if few_carry(weight[asked], least) or few_carry(weight[~asked], least):
                return "it rests on"
        for earlier in (self.steep, self.gentle) if point.is_steep else (self.steep,):
            if earlier.differ_in_few(point, asked, self.least if asked.all() else half_of(self.least)):
                return "it and an earlier one differ in"
        return None

    def remember(self, point: Point, asked: Array) -> None:
        """Keep the point."""
        (self.steep if point.is_steep else self.gentle).add(point, asked)


class Remembered:
    """Points, the oldest of which go where there are too many."""

    def __init__(self) -> None:
        self.count = 0
        self._sums: dict[str, Float] = {}
        self._has_curvature = np.zeros(0, dtype=bool)

    def add(self, point: Point, asked: Array) -> None:
        """Keep one."""
        size = max(FEWEST, min(MOST_POINTS, BYTES // point.residuals.nbytes))
        place, shape = self.count % size, point.residuals.shape
        if self.count < size and place >= len(self._has_curvature):  # room for twice as many
            more = min(size, max(16, 2 * place)) - place
            self._has_curvature = np.append(self._has_curvature, np.zeros(more, dtype=bool))
            for name in ("residuals", "curvature"):
                old = self._sums.get(name, np.zeros((0, *shape)))
                self._sums[name] = np.concatenate([old, np.zeros((more, *shape))])
        self._sums["residuals"][place] = np.where(asked, point.residuals, 0.0)
        self._has_curvature[place] = point.curvature is not None and not point.jumps
        if point.curvature is not None:
            self._sums["curvature"][place] = np.where(asked, point.curvature, 0.0)
        self.count += 1

    def differ_in_few(self, point: Point, asked: Array, least: int) -> bool:
        """Whether sums at the point, less those at one of these, rest on few rows."""
        kept = min(self.count, len(self._has_curvature))
        if not kept:
            return False
        if _few_differ(point.residuals, self._sums["residuals"][:kept], asked, least):
            return True
        if point.curvature is None or point.jumps or not self._has_curvature[:kept].any():
            return False
        return _few_differ(
            point.curvature, self._sums["curvature"][:kept][self._has_curvature[:kept]], asked, least
        )


def _few_differ(mine: Float, theirs: Float, asked: Array, least: int) -> bool:
    """For weights (C, n) against those of m others (m, C, n)."""
    mine = np.where(asked, mine, 0.0)
    with np.errstate(invalid="ignore"):
        difference = np.abs(theirs - mine)
        scale = np.maximum(np.abs(theirs).max(axis=2), np.abs(mine).max(axis=1))
        real = difference.max(axis=2) > ROUNDING * scale
    return bool((few_carry(np.moveaxis(difference, 2, 0), least) & real).any())
