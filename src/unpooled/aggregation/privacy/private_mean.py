"""The server's part in a private run: cohorts drawn in secret, clipped means with noise, their cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from unpooled.aggregation.privacy.accountant import Accountant
from unpooled.aggregation.privacy.noise import Secret
from unpooled.aggregation.privacy.spent import Spent
from unpooled.kernels.arrays import Array, Arrays

if TYPE_CHECKING:
    from unpooled.aggregation.privacy.central import CentralDP
    from unpooled.aggregation.privacy.clipping import ClippedMean


@dataclass(eq=False)
class PrivateMean:
    """One run's; ``before`` is what the run to resume had spent."""

    asked: CentralDP
    accountant: Accountant
    noise_multiplier: float
    before: Spent | None
    counts: dict[int, tuple[int, int]] = field(default_factory=dict)  # round: uploads clipped, not finite

    @cached_property
    def secret(self) -> Secret:
        """Where noise and cohorts come from."""
        return Secret(self.asked.noise_seed)

    @cached_property
    def aggregate(self) -> ClippedMean:
        """The clipped mean, which has yet to get its noise."""
        from unpooled.aggregation.privacy.clipping import ClippedMean

        return ClippedMean(float(self.asked.clip))

    def cohort(self, round: int) -> Array:
        """The clients of a round."""
        self.aggregate.begin()
        return self.secret.cohort(round, self.accountant.n_clients, self.accountant.cohort)

    def weights(self, present: Array) -> tuple[Array, float]:
        """1/S for each participating client, regardless of π_k; and S/K.

        A client of the cohort that does not participate counts as zero: a larger weight for the others would
        make the noise too small.
        """
        size = self.accountant.cohort
        return np.full(len(present), 1.0 / size), size / self.accountant.n_clients

    def noised(self, mean: Arrays, round: int) -> Arrays:
        """The mean of clipped uploads with its noise; all that is made of it is post-processing."""
        self.counts[round] = (self.aggregate.clipped, self.aggregate.not_finite)
        deviation = self.noise_multiplier * float(self.asked.clip) / self.accountant.cohort
        size = len(next(iter(mean.values())))
        noise = deviation * self.secret.normal(round, (len(mean), size))
        return {name: vector + noise[i] for i, (name, vector) in enumerate(mean.items())}

    def rounds_within(self, most: int) -> int:
        """How many rounds in all the budget allows, at most ``most``."""
        if self.asked.epsilon is None:
            return most
        return self.accountant.rounds_within(float(self.asked.epsilon), self.noise_multiplier, most)

    def epsilon(self, rounds: int) -> float:
        """The ε of ``rounds`` rounds in total."""
        return self.accountant.epsilon(self.noise_multiplier, rounds)

    def ended(self, last: int, rounds: int) -> str:
        """Why the run stops before all rounds are done."""
        return (
            f"The budget ε = {self.asked.epsilon:g} allows {last} of {rounds} rounds: "
            f"one more would spend ε = {self.epsilon(last + 1):.4g}."
        )

    def spent(self, rounds: int) -> Spent:
        """The privacy spent after ``rounds`` rounds in total."""
        clipped, not_finite = -1, -1
        if self.asked.history:
            done = [counts for round, counts in self.counts.items() if round < rounds]
            clipped, not_finite = (sum(column) for column in zip((0, 0), *done, strict=True))
            if self.before is not None:
                clipped, not_finite = clipped + self.before.clipped, not_finite + self.before.not_finite
        return Spent(
            epsilon=self.epsilon(rounds),
            delta=float(self.asked.delta),
            rounds=rounds,
            budget=None if self.asked.epsilon is None else float(self.asked.epsilon),
            clip=float(self.asked.clip),
            noise_multiplier=self.noise_multiplier,
            uploads=rounds * self.accountant.cohort,
            clipped=clipped,
            not_finite=not_finite,
            is_seeded=self.asked.noise_seed is not None,
        )

    def choices(self, pi: Array, rounds: int) -> list[str]:
        """Notes on the choices made for a new run."""
        said = []
        if self.asked.noise_multiplier is None:
            said.append(
                f"noise_multiplier = {self.noise_multiplier:.4g}: {rounds} rounds then cost "
                f"ε = {self.epsilon(rounds):.4g}"
            )
        if np.ptp(pi) > 1e-12:
            said.append("clients count equally, not by π_k: the shares π_k depend on the rows")
        if self.accountant.cohort < self.accountant.n_clients and not self.accountant.is_amplified:
            said.append("clients have a memory, so sampling them is not counted in favour of privacy")
        return said
