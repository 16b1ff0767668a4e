"""The sites of a study as data for solvers: what was agreed is known, so nothing need be asked for again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unpooled.data.base import Posed
from unpooled.engines.remote.data import RemoteData
from unpooled.engines.remote.messages import Failure, Holder, Reply, Request, Through, Transport
from unpooled.problem import BoundProblem
from unpooled.study.agreement import Agreement
from unpooled.study.description import Description
from unpooled.study.envelope import Envelope


class Enveloped(Through):
    """A transport that puts an envelope around every request; only the study's own sites are asked."""

    def __init__(self, transport: Transport, envelope: Envelope, sites: Sequence[str]):
        super().__init__(transport)
        self.envelope, self.sites = envelope, tuple(sites)

    def holders(self) -> tuple[Holder, ...]:
        """The sites that take part."""
        return self.sites

    def exchange(self, requests: Mapping[Holder, Request]) -> dict[Holder, Reply | Failure]:
        """Ask."""
        return self.transport.exchange(
            {site: self.envelope.around(request) for site, request in requests.items()}
        )


@dataclass(frozen=True, eq=False, repr=False)
class SitesData(RemoteData):
    """``RemoteData`` of sites that have agreed; their targets were checked before."""

    n_classes: int = 0

    def bind(self, problem: Posed) -> BoundProblem:
        """The problem laid out; no round is made for it."""
        laid_out: BoundProblem = problem.laid_out(
            self.row_shape, self.n_classes if self.n_classes > 2 else None
        )
        return laid_out


def sites_data(
    transport: Transport, agreement: Agreement, sites: Sequence[Description], *, has_missing: bool
) -> SitesData:
    """The data of these sites, in the order of their ids."""
    sizes = np.array([each.rows for each in sites], dtype=np.int64)
    totals = sizes.astype(np.float64)
    return SitesData(
        transport=transport,
        holders={each.site: np.array([k], dtype=np.int64) for k, each in enumerate(sites)},
        ids=tuple(each.site for each in sites),
        sizes=sizes,
        totals=totals,
        weights=totals / totals.sum(),
        row_shape=(len(agreement.feature_names),),
        dtype=np.dtype(np.float64),
        is_sparse=False,
        is_mapped=False,
        has_missing=has_missing,
        feature_names=agreement.feature_names,
        digest="",
        retries=0,
        is_weighted=False,
        n_classes=len(agreement.classes),
    )
