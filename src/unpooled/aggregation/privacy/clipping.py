"""The mean of clipped uploads: no client moves it by more than its weight times the clip."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from unpooled.aggregation.base import Aggregate
from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel
from unpooled.kernels.weighted_sum import add_weighted, all_sound

ROOM = 1.0 - 1e-12  # so that the norm after rounding is not above the clip


class ClippedMean(Aggregate):
    """Σ_s weight_s u_s · min(1, clip/‖u_s‖), ‖u‖ the ℓ2 norm of all vectors of an upload together.

    An upload that is not finite counts as zero: were it to end the run, the end would tell on one client.
    ``clipped`` and ``not_finite`` count since ``begin``.
    """

    needs_all: ClassVar[bool] = False
    refuses_infinite: ClassVar[bool] = False

    def __init__(self, clip: float):
        self.clip = clip
        self.begin()

    def begin(self) -> None:
        """Count from zero."""
        self.clipped = self.not_finite = 0

    def combine(self, mean: Array, weights: Array, up: Array) -> None:
        """Clip, then add client after client."""
        factors = np.empty(len(up))
        clip_factors(up, self.clip, factors)
        self.not_finite += int(np.sum(factors == 0.0))
        self.clipped += int(np.sum((factors > 0.0) & (factors < 1.0)))
        add_weighted(mean, weights * factors, up)


@kernel
def clip_factors(up: Array, clip: float, factors: Array) -> None:
    """min(1, clip/‖u_s‖) for every upload; zero, and the upload set to zero, where it is not finite."""
    for s in range(up.shape[0]):
        squares = 0.0
        if all_sound(up[s]):
            for i in range(up.shape[1]):
                for q in range(up.shape[2]):
                    squares += np.float64(up[s, i, q]) ** 2
            norm = np.sqrt(squares)
            factors[s] = 1.0 if norm <= clip else ROOM * clip / norm
        else:
            factors[s] = 0.0
            for i in range(up.shape[1]):
                for q in range(up.shape[2]):
                    up[s, i, q] = 0.0
