"""The mean and the variance of every column over all rows, in one round."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unpooled._ledger import Ledger
from unpooled._validation import column
from unpooled._wording import joined, part_of
from unpooled.data.base import Data
from unpooled.engines.remote.summaries import ColumnSummary
from unpooled.exact.clients import QuestionEngine, open_clients
from unpooled.kernels.arrays import Array, Float

ROUNDING = 10.0 * float(np.finfo(np.float64).eps)  # of a mean: a spread below it is none


@dataclass(frozen=True, eq=False, repr=False)
class Moments:
    """``mean`` and ``variance`` of the observed values, in the shape of a row.

    Rows count with their share of the objective (π_k s_i/n_k), and the variance divides by the total weight,
    as scikit-learn's StandardScaler does; ``within`` is the part of it about the clients' own means.
    ``missing`` (K, …) counts missing values by client.
    """

    mean: Float
    variance: Float
    within: Float
    missing: Array
    n_rows: int
    ledger: Ledger
    notes: tuple[str, ...]

    @property
    def is_constant(self) -> Array:
        """Which columns have one value only, up to rounding."""
        return np.asarray(np.sqrt(self.variance) <= ROUNDING * np.abs(self.mean))

    @property
    def is_constant_within(self) -> Array:
        """Which columns have one value only at every client, up to rounding."""
        size = np.sqrt(np.square(self.mean) + self.variance)
        return np.asarray(np.sqrt(self.within) <= ROUNDING * size)

    @property
    def scale(self) -> Float:
        """The standard deviation; 1 for constant columns."""
        return np.where(self.is_constant, 1.0, np.sqrt(self.variance))

    def __repr__(self) -> str:
        return f"Moments({self.mean.size} columns of {self.n_rows} rows; {self.ledger})"


def moments(data: Data, *, engine: QuestionEngine | None = None) -> Moments:
    """Pooled mean and variance per column, equal to those of the stacked rows to rounding.

    Each site sends its summary (``summaries``); the server merges them by the formula of Chan, Golub and
    LeVeque (1979). It sees each site's means and variances, not only their sum: a site of a single row
    would show that row, so keep such sites out, or give shift and scale by other means.
    """
    if not isinstance(data, Data):
        raise TypeError(f"data must be a FederatedData (see its from_ functions), got {type(data).__name__}")
    answers, traffic = open_clients(engine, data).collect(ColumnSummary())
    ledger = Ledger().after_answers(traffic.clients, traffic.floats_up, traffic.floats_down, traffic.kinds)
    weight = data.weights[:, None] * np.array([a["observed"] for a in answers])
    total = weight.sum(axis=0)
    if not total.all():
        where = np.unravel_index(int(np.argmin(total)), data.row_shape)
        name = column([int(i) for i in where], data.feature_names)
        raise ValueError(f"{name} has no observed value at any client: leave it out")
    anchors = np.array([a["anchor"] for a in answers])
    reference = anchors[np.argmax(weight, axis=0), np.arange(data.n_features)]
    means = (anchors - reference) + np.array([a["offset"] for a in answers])
    center = np.sum(weight * means, axis=0) / total
    within = data.weights @ np.array([a["squares"] for a in answers])
    between = np.sum(weight * np.square(means - center), axis=0)
    missing = np.array([a["missing"] for a in answers])
    result = Moments(
        mean=(reference + center).reshape(data.row_shape),
        variance=((within + between) / total).reshape(data.row_shape),
        within=(within / total).reshape(data.row_shape),
        missing=missing.reshape(data.n_clients, *data.row_shape),
        n_rows=data.n_rows,
        ledger=ledger,
        notes=(),
    )
    return _noted(result, data)


def _noted(found: Moments, data: Data) -> Moments:
    notes = []
    if found.is_constant.any():
        notes.append(f"{constant_columns(found.is_constant, data)} constant: the scale there is 1.")
    alone = int(np.sum(data.sizes == 1))
    if alone:
        notes.append(
            f"{part_of(alone, data.n_clients, 'client', 'has', 'have')} a single row, which the mean shows."
        )
    return replace(found, notes=tuple(notes))


def constant_columns(chosen: Array, data: Data) -> str:
    """``column 'a' and column 'b' are``: those of the shape of a row that are chosen."""
    names = [column(index.tolist(), data.feature_names) for index in np.argwhere(chosen)]
    return f"{joined(names)} {'is' if len(names) == 1 else 'are'}"
