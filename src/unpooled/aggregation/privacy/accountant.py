"""What rounds of noised means cost: (ε, δ) for the replacement of one client's data by any other.

The mean of S uploads, each of norm at most C, moves by at most 2C/S when one client is replaced. Noise of
standard deviation zC/S is therefore z/2 times the sensitivity, and z/2 is what accounting is about.

- A round of all clients is a Gaussian mechanism, and R of them are one with multiplier z/(2√R), whose ε is
  known exactly (Balle, Wang, ICML 2018).
- A cohort is S of K clients without replacement, drawn in secret: the Rényi bound for this sampling and this
  relation (Wang, Balle, Kasiviswanathan, AISTATS 2019, Theorem 27), as dp_accounting's
  SampledWithoutReplacementDpEvent. Bounds for Poisson sampling do not apply. Whatever the cohorts are, nobody
  loses more than by taking part in every round, so the smaller of both numbers is valid.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

ORDERS = (*range(2, 33), 36, 40, 48, 56, 64, 80, 96, 128, 512)  # between them the bound interpolates
NONE = 1e-6  # noise so small relative to the sensitivity, ε about 5e11, is called none
PRECISION = 1e-3  # a calibrated multiplier is at most this much larger, relatively, than it need be


@dataclass(frozen=True)
class Accountant:
    """Rounds of ``cohort`` out of ``n_clients``; ``is_amplified``: whether sampling counts in favour."""

    n_clients: int
    cohort: int
    delta: float
    is_amplified: bool = True

    def epsilon(self, noise_multiplier: float, rounds: int) -> float:
        """The ε of ``rounds`` rounds."""
        if rounds == 0:
            return 0.0
        plain = _gaussian(noise_multiplier / 2.0 / math.sqrt(rounds), self.delta)
        if not self.is_amplified or self.cohort == self.n_clients or math.isinf(plain):
            return plain
        return min(plain, _sampled(noise_multiplier / 2.0, self.n_clients, self.cohort, rounds, self.delta))

    def noise_multiplier(self, epsilon: float, rounds: int) -> float:
        """The smallest multiplier, up to ``PRECISION``, at which ``rounds`` cost at most ``epsilon``."""
        enough = 2.0 * math.sqrt(rounds) * float(_dp_accounting().get_sigma_gaussian(epsilon, self.delta))
        while self.epsilon(enough, rounds) > epsilon:  # by a rounding error
            enough *= 1.0 + 1e-9
        if not self.is_amplified or self.cohort == self.n_clients:
            return enough
        small = enough
        while self.epsilon(small, rounds) <= epsilon:
            enough, small = small, small / 2.0
        while enough > (1.0 + PRECISION) * small:
            middle = math.sqrt(small * enough)
            small, enough = (small, middle) if self.epsilon(middle, rounds) <= epsilon else (middle, enough)
        return enough

    def rounds_within(self, epsilon: float, noise_multiplier: float, most: int) -> int:
        """How many rounds, at most ``most``, cost at most ``epsilon``."""
        if self.epsilon(noise_multiplier, most) <= epsilon:
            return most
        within, beyond = 0, most
        while beyond - within > 1:
            middle = (within + beyond) // 2
            is_within = self.epsilon(noise_multiplier, middle) <= epsilon
            within, beyond = (middle, beyond) if is_within else (within, middle)
        return within


@functools.lru_cache(maxsize=4096)
def _gaussian(multiplier: float, delta: float) -> float:
    if multiplier < NONE:
        return math.inf
    return float(_dp_accounting().get_epsilon_gaussian(multiplier, delta))


@functools.lru_cache(maxsize=4096)
def _sampled(multiplier: float, n_clients: int, cohort: int, rounds: int, delta: float) -> float:
    dp, relation = _dp_accounting(), _dp_accounting().NeighboringRelation.REPLACE_ONE
    round = dp.SampledWithoutReplacementDpEvent(n_clients, cohort, dp.GaussianDpEvent(multiplier))
    accountant = dp.rdp.RdpAccountant(orders=ORDERS, neighboring_relation=relation)
    return float(accountant.compose(round, rounds).get_epsilon(delta))


def _dp_accounting() -> Any:
    try:
        import dp_accounting
        import dp_accounting.rdp
    except ImportError as error:
        raise ImportError(
            "privacy is accounted for by dp-accounting: pip install 'unpooled[privacy]' brings it"
        ) from error
    return dp_accounting
