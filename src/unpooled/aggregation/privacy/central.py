"""Central differential privacy of a run: what is asked for, what is refused."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from unpooled._validation import is_number
from unpooled._warned import warn
from unpooled.aggregation.privacy.accountant import Accountant
from unpooled.aggregation.privacy.private_mean import PrivateMean
from unpooled.aggregation.privacy.spent import Spent
from unpooled.algorithms.base import Algorithm, check_positive
from unpooled.algorithms.curvature import Curvature
from unpooled.kernels.arrays import Float

if TYPE_CHECKING:
    from unpooled.data.base import Data
    from unpooled.problem import Problem


@dataclass(frozen=True, kw_only=True)
class CentralDP:
    """Client-level differential privacy: the server clips uploads, averages them and adds noise.

        mean = (1/S) Σ_s u_s · min(1, clip/‖u_s‖)  +  N(0, (noise_multiplier · clip / S)²)

    with S the size of the cohort. Whoever sees what a run releases, its w and intercept, can hardly tell
    whether one client's rows were replaced by others. The server itself sees the uploads: it is trusted.
    Every client counts equally, whatever its π_k, for π_k depends on the rows; cohorts are drawn in secret
    and not by the run's seed, for what sampling gains rests on that.

    Parameters
    ----------
    clip : bound on the ℓ2 norm of an upload, all its vectors together.
    noise_multiplier : z; None chooses it so that all planned rounds cost ``epsilon``.
    epsilon : the budget; the run stops before the round that would exceed it. None with a
        ``noise_multiplier``: no limit, what is spent is counted.
    delta : the probability for which ε need not hold; far below one over the number of clients.
    noise_seed : for tests only: noise and cohorts that can be repeated, and therefore no privacy.
    history : whether to record the objective, metrics and how many uploads were clipped, all of them computed
        from the rows without noise. With False nothing of that kind is in the run.
    """

    clip: float
    noise_multiplier: float | None = None
    epsilon: float | None = None
    delta: float
    noise_seed: int | None = None
    history: bool = True

    def __post_init__(self) -> None:
        if self.clip is None:
            raise ValueError("clip must be a positive number, got None")
        check_positive(clip=self.clip, noise_multiplier=self.noise_multiplier, epsilon=self.epsilon)
        if self.noise_multiplier is None and self.epsilon is None:
            raise ValueError("give noise_multiplier, or epsilon, from which it is chosen, or both")
        if not is_number(self.delta) or not 0.0 < self.delta < 1.0:
            raise ValueError(f"delta must be a number between 0 and 1, got {self.delta!r}")
        seed = self.noise_seed
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int | np.integer)):
            raise ValueError(f"noise_seed must be None, or a whole number for tests, got {seed!r}")

    def settings(self) -> dict[str, Any]:
        """The fields by name; what a resumed run must have in common."""
        return asdict(self)

    def check(self, algorithm: Algorithm, problem: Problem, data: Data, rounds: int) -> None:
        """Refuse what would look at the rows uncounted, and a δ that promises nothing."""
        try:
            algorithm.resolve(Unmeasured(problem, data, None), rounds)
        except UnmeasuredError:
            settings = algorithm.settings()
            left = [name for name in ("step", "gamma", "mu") if settings.get(name, 0) is None]
            raise ValueError(
                f"with privacy, give {type(algorithm).__name__} its {' and '.join(left)}: a default would be "
                "measured on the rows, and no budget accounts for that"
            ) from None
        if self.delta >= 1.0 / data.n_clients:
            raise ValueError(
                f"delta = {self.delta:g} would allow to publish one of {data.n_clients} clients as it is; "
                "take it far below one over their number"
            )

    def open(
        self, algorithm: Algorithm, n_clients: int, cohort: int | None, rounds: int, spent: Spent | None
    ) -> PrivateMean:
        """The server's part in a run; ``spent`` is that of a run to resume."""
        # What a client remembers depends on the rounds in which it took part, and so do its later uploads:
        # the theorem about sampling does not cover this, so sampling gains nothing then.
        accountant = Accountant(n_clients, cohort or n_clients, self.delta, not algorithm.memory)
        if spent is not None:
            noise_multiplier = spent.noise_multiplier
        elif self.noise_multiplier is not None:
            noise_multiplier = float(self.noise_multiplier)
        else:
            noise_multiplier = accountant.noise_multiplier(float(self.epsilon or 0.0), rounds)
        if self.noise_seed is not None:
            warn("noise_seed: noise that can be repeated can be taken off again")
        return PrivateMean(self, accountant, noise_multiplier, spent)


class UnmeasuredError(Exception):
    """A default would have to be measured."""


class Unmeasured(Curvature):
    """A curvature that nobody has measured."""

    @cached_property
    def clients(self) -> tuple[Float, Float]:
        """Not known."""
        raise UnmeasuredError

    @cached_property
    def spectrum(self) -> tuple[Float, Float]:
        """Not known."""
        raise UnmeasuredError
