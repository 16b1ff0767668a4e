"""An intercept for every site: what each is for given coefficients, and what to use at a site unknown."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from unpooled._ledger import Ledger
from unpooled._validation import ClientId, closest
from unpooled._warned import warn
from unpooled._wording import counted, joined
from unpooled.data.base import Data
from unpooled.engines.remote.summaries import OwnIntercept
from unpooled.exact.clients import QuestionEngine, open_clients
from unpooled.exact.solve import bind
from unpooled.kernels.arrays import Float
from unpooled.problem import Problem


@dataclass(frozen=True, eq=False, repr=False)
class SiteIntercepts:
    """``values`` (K,), or (K, C) for Softmax, in the order of ``ids``.

    ``unknown``, for a site that took no part, is their mean weighted with π_k. An infinite one (a site whose
    labels are all alike) does not count there.
    """

    ids: tuple[ClientId, ...]
    values: Float
    unknown: Any
    ledger: Ledger

    def of(self, site: ClientId, *, unknown: str = "mean") -> Any:
        """One site's intercept; for a site unknown the mean, or a complaint with unknown="refuse"."""
        if unknown not in ("mean", "refuse"):
            raise ValueError(f"unknown must be 'mean' or 'refuse', got {unknown!r}")
        if site in self.ids:
            value = self.values[self.ids.index(site)]
            return float(value) if np.ndim(value) == 0 else value
        if unknown == "refuse":
            raise ValueError(f"site {site!r} took no part in the fit{closest(site, self.ids)}")
        return self.unknown

    def of_rows(self, clients: Any, *, unknown: str = "mean") -> Float:
        """The intercept of each row, given the site of each row.

        Ids that are unknown, but written like known ones ("1224" for 1224), are warned of.
        """
        sites = np.asarray(clients).tolist()
        counts = Counter(sites)
        if unknown == "mean":
            self._warn_of_lookalikes(counts)
        known = {site: self.of(site, unknown=unknown) for site in counts}
        return np.array([known[site] for site in sites])

    def _warn_of_lookalikes(self, counts: Counter[Any]) -> None:
        strangers = set(counts) - set(self.ids)
        if not strangers:
            return
        written = {_as_text(site): site for site in self.ids}
        meant = {
            site: written[_as_text(site)]
            for site in counts
            if site in strangers and _as_text(site) in written
        }
        if meant:
            pairs = joined([f"{site!r} for {own!r}" for site, own in meant.items()], most=3)
            warn(
                f"{sum(counts[site] for site in meant)} of {counted(counts.total(), 'row')} have a client id "
                f"that the fit does not know, but that is written like one it knows ({pairs}): they get the "
                "mean of the sites' intercepts. Give ids of the same type as in the fit"
            )

    def shifted(self, by: Any) -> SiteIntercepts:
        """All of them plus a number (C numbers)."""
        unknown = self.unknown + by
        return replace(
            self, values=self.values + by, unknown=float(unknown) if np.ndim(unknown) == 0 else unknown
        )

    def __repr__(self) -> str:
        return f"SiteIntercepts({len(self.ids)} sites, unknown {self.unknown}; {self.ledger})"


def _as_text(site: Any) -> str:
    """An id as it would be written in a table, whatever type it was read as."""
    return str(site).strip().removesuffix(".0")


def site_intercepts(
    problem: Problem, data: Data, w: ArrayLike, *, engine: QuestionEngine | None = None
) -> SiteIntercepts:
    """Every site's own intercept at the coefficients ``w``; one round, in which sites tell it."""
    if not problem.has_site_intercepts:
        raise ValueError("the problem has no site intercepts: Problem(loss, penalty, intercept='sites')")
    bound = bind(problem, data)
    flat = bound.layout.pack(w)
    answers, traffic = open_clients(engine, data).collect(OwnIntercept(bound, flat))
    values = np.array([each["intercept"] for each in answers])
    finite = np.isfinite(values)
    weight = data.weights[:, None] * finite
    mean = np.sum(weight * np.where(finite, values, 0.0), axis=0) / np.maximum(weight.sum(axis=0), 1e-300)
    down = flat.size * data.n_clients
    ledger = Ledger().after_answers(traffic.clients, traffic.floats_up, down, traffic.kinds)
    if bound.layout.order == "C":
        return SiteIntercepts(data.ids, values[:, 0], float(mean[0]), ledger)
    return SiteIntercepts(data.ids, values, mean, ledger)
