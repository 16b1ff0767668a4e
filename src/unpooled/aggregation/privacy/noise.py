"""Secret randomness for privacy: a run's seed, or its saved file, must not suffice to repeat it.

Every draw comes fresh from the operating system's cryptographic generator; no key is kept and nothing is
written anywhere. Under a ``seed``, for tests, it is the output of SHAKE-256 of the seed and what is drawn
(its purpose and round) instead.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass

import numpy as np

from unpooled.kernels.arrays import Array, Float
from unpooled.kernels.draws import forgotten_cohort


@dataclass(frozen=True)
class Secret:
    """Draws that cannot be repeated; with a ``seed`` (for tests) they can, and nothing is private."""

    seed: int | None = None

    def _words(self, purpose: str, round: int, count: int) -> Array:
        """``count`` random 64-bit words."""
        if self.seed is None:
            return np.frombuffer(os.urandom(8 * count), np.uint64)
        stream = hashlib.shake_256(f"{self.seed} {purpose} {round}".encode())
        return np.frombuffer(stream.digest(8 * count), np.dtype("<u8"))

    def normal(self, round: int, shape: tuple[int, ...]) -> Float:
        """Standard normal numbers: a sign, and the inverse distribution function at 52 bits below ½."""
        from scipy.special import ndtri  # slow to import

        words = self._words("noise", round, int(np.prod(shape)))
        below = ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-53
        sign = np.where(words & np.uint64(1), 1.0, -1.0)
        return np.asarray(sign * ndtri(below)).reshape(shape)

    def cohort(self, round: int, n_clients: int, size: int | None) -> Array:
        """The clients of a round, as ``sampling.cohort`` draws them, by a seed that nobody knows."""
        return forgotten_cohort(int(self._words("cohort", round, 1)[0]), round, n_clients, size)
