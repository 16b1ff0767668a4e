"""Data dealt out to several processes: neighbouring clients together, about equally many rows each."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np

from unpooled.data.client_view import row_slice
from unpooled.data.federated import FederatedData


def shares(data: FederatedData, count: int) -> list[FederatedData]:
    """At most ``count`` parts of the data, views of it. Weights of rows and clients stay as they are."""
    count = min(count, data.n_clients)
    middles = (data.offsets[:-1] + data.offsets[1:]) / 2
    of = np.minimum((middles * count / max(data.n_rows, 1)).astype(np.int64), count - 1)
    edges = [0, *(np.flatnonzero(np.diff(of)) + 1).tolist(), data.n_clients]
    return [_clients(data, first, stop) for first, stop in itertools.pairwise(edges)]


def _clients(data: FederatedData, first: int, stop: int) -> FederatedData:
    rows, own = slice(int(data.offsets[first]), int(data.offsets[stop])), slice(first, stop)
    return replace(
        data,
        X=row_slice(data.X, rows),
        y=data.y[rows],
        offsets=data.offsets[first : stop + 1] - data.offsets[first],
        ids=data.ids[own],
        sample_weight=None if data.sample_weight is None else data.sample_weight[rows],
        weights=data.weights[own],
        totals=data.totals[own],
    )
