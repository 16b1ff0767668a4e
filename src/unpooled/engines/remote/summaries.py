"""What a site can be asked for itself, to be merged in other ways than by a sum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpooled.exact.expected import Rule
from unpooled.exact.site import Site
from unpooled.exact.site_intercept import fitted, reported
from unpooled.kernels.arrays import Arrays, Float
from unpooled.problem import BoundProblem

ROUNDING = 1e-9  # of shares, which are sums over rows


@dataclass(frozen=True)
class ColumnSummary:
    """The mean and the squares of every column (``preprocessing.summaries``)."""

    def __call__(self, site: Site) -> Arrays:
        """One site's."""
        from unpooled.exact.summaries import summary

        return summary(site)

    def expected(self, n_features: int, n_rows: int, weight: float) -> dict[str, Rule]:
        """What a site of so many rows, whose shares come to ``weight``, answers."""
        p = (n_features,)
        return {
            "observed": Rule(p, 0.0, weight * (1.0 + ROUNDING)),
            "anchor": Rule(p),
            "offset": Rule(p),
            "squares": Rule(p, 0.0),
            "missing": Rule(p, 0, n_rows, is_count=True),
        }


@dataclass(frozen=True, eq=False)
class OwnIntercept:
    """The site's own intercept at the coefficients ``flat`` of a problem that has one for every site."""

    problem: BoundProblem
    flat: Float

    def __call__(self, site: Site) -> Arrays:
        """One site's."""
        loss = self.problem.linear
        assert loss is not None  # Problem has made sure
        Z = site.margins(self.flat, self.problem.layout.n_outputs)
        return {"intercept": reported(fitted(loss, Z, site.y, site.share), Z, site.share)}

    def expected(self, n_features: int, n_rows: int, weight: float) -> dict[str, Rule]:
        """What a site answers: an intercept may be infinite."""
        return {"intercept": Rule((self.problem.layout.n_outputs,), -np.inf, np.inf)}
