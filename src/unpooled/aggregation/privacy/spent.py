"""What a private run has spent, and how many uploads were clipped: kept with the run and resumed with it."""

from __future__ import annotations

from dataclasses import dataclass

from unpooled._wording import counted, numbered

MANY = 0.5  # of the uploads clipped, and the clipping decides the result


@dataclass(frozen=True)
class Spent:
    """(ε, δ) after ``rounds``, for the replacement of one client; ``budget`` is the ε not to exceed, if any.

    Of so many ``uploads`` some were ``clipped``, some were ``not_finite`` and counted as zero. These counts
    come from the rows without noise and are for who may see the rows (-1 where nothing was to be recorded).
    """

    epsilon: float
    delta: float
    rounds: int
    budget: float | None
    clip: float
    noise_multiplier: float
    uploads: int
    clipped: int
    not_finite: int
    is_seeded: bool

    def __str__(self) -> str:
        budget = "" if self.budget is None else f" of {self.budget:g}"
        how = f"clip {self.clip:g}, noise multiplier {self.noise_multiplier:.4g}"
        promise = f"ε = {self.epsilon:.4g}{budget} spent at δ = {self.delta:g}, for one client replaced"
        account = f"{promise} ({how})"
        return f"NOT private, noise_seed is known; were it secret: {account}" if self.is_seeded else account

    def notes(self) -> list[str]:
        """Notes for the run's summary."""
        said = [
            f"privacy: {self}",
            "this covers w and intercept only: the history, the counts of clipped uploads and the saved run "
            "are computed from the rows without noise; share them only with people who may see the rows",
        ]
        if self.clipped < 0 or not self.uploads:
            return said
        share = self.clipped / self.uploads
        said.append(f"{share:.0%} of {counted(self.uploads, 'upload')} were clipped")
        if share > MANY:
            said[-1] += ": a larger clip, a smaller step or fewer local steps would distort less"
        if self.not_finite:
            said.append(
                numbered(self.not_finite, "upload was", "uploads were")
                + " not finite and counted as zero: take a smaller step"
            )
        return said
