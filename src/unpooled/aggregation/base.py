"""Aggregates of a round's uploads: the mean, or a robust location that few faulty clients cannot move.

With weights p_s of the cohort, summing to one, and u_s the uploads, coordinate by coordinate:

    Mean             Σ_s p_s u_s
    CoordinateMedian the weighted median: at most half of the weight lies below, at most half above
    TrimmedMean(β)   the weighted mean of what is left once the weight β is cut off at either end

Where the weights sum to W ≠ 1 (weighting="unbiased") the result is W times that of p = weights / W.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from unpooled._validation import is_number
from unpooled.kernels.arrays import Array
from unpooled.kernels.weighted_sum import add_weighted


class Aggregate(ABC):
    """Combine the uploads of a round into one, in the same way for every vector of an upload.

    The attributes are settings: a run can be resumed only with equal attributes, so keep counters elsewhere.
    """

    needs_all: ClassVar[bool] = True
    """Whether all uploads of a round have to be in memory at once: |cohort| · vectors · size numbers."""
    refuses_infinite: ClassVar[bool] = True
    """Whether an upload that is not finite ends the run; else ``combine`` has to deal with it."""

    @abstractmethod
    def combine(self, mean: Array, weights: Array, up: Array) -> None:
        """Add the aggregate of ``up`` (clients, vectors, size) to ``mean`` (vectors, size).

        ``mean`` starts at zero. With ``needs_all``, this is called once with the whole cohort, otherwise once
        for each part of it. ``up`` may be overwritten.
        """


@dataclass(frozen=True)
class Mean(Aggregate):
    """The weighted mean: the default, and the aggregate that the algorithms' theory assumes."""

    needs_all: ClassVar[bool] = False

    def combine(self, mean: Array, weights: Array, up: Array) -> None:
        """Client after client."""
        add_weighted(mean, weights, up)


@dataclass(frozen=True)
class CoordinateMedian(Aggregate):
    """The weighted median of every coordinate, halfway where a whole interval is one.

    Clients with less than half of the weight, whatever they send, cannot move a coordinate beyond the others'
    range. Where honest clients differ it is not their mean: expect a bias that grows with the difference.
    """

    def combine(self, mean: Array, weights: Array, up: Array) -> None:
        """All clients at once."""
        from unpooled.aggregation.robust import compiled_locations

        compiled_locations()(mean, weights, up, 0.5)


@dataclass(frozen=True)
class TrimmedMean(Aggregate):
    """The weighted mean of every coordinate without the weight ``fraction`` at either end.

    Clients with up to ``fraction`` of the weight, whatever they send, cannot move a coordinate beyond the
    others' range. A client on the edge counts with the part of its weight that is not cut; with equal weights
    and a whole number fraction · |cohort| this is the textbook's trimmed mean.

    Parameters
    ----------
    fraction : 0 ≤ β < 1/2.
    """

    fraction: float

    def __post_init__(self) -> None:
        if not is_number(self.fraction) or not 0.0 <= self.fraction < 0.5:
            raise ValueError(f"fraction must be a number in [0, 0.5), got {self.fraction!r}")

    def combine(self, mean: Array, weights: Array, up: Array) -> None:
        """All clients at once."""
        from unpooled.aggregation.robust import compiled_locations

        compiled_locations()(mean, weights, up, float(self.fraction))
