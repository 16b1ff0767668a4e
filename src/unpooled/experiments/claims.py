"""What the paper says of an experiment, sentence by sentence, and whether it held here.

A claim is a table in the experiment's file: some methods are better than others in a metric over a range
of rounds (``better_than``, ``rounds``), or a metric ends, or stands at a ``round``, on the right side of a
number (``at_least``, ``at_most``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unpooled.runs.metrics import higher_is_better
from unpooled.runs.run import Run, Status


@dataclass(frozen=True)
class Claim:
    """One sentence, what it says in numbers, where it stands, and what is known if it does not hold."""

    text: str
    source: str
    metric: str
    methods: tuple[str, ...]
    better_than: tuple[str, ...] = ()
    rounds: tuple[int, int] | None = None
    share: float = 1.0  # of the recorded rounds at which they must be better
    round: int | None = None
    at_least: float | None = None
    at_most: float | None = None
    why_not: str = ""
    honest: bool = False  # not the paper's: about rows that it does not show

    def judge(self, runs: Mapping[str, Sequence[Run]], rounds: int) -> Finding:
        """Against the mean over seeds; ``rounds`` is how long the experiment is when run in full."""
        missing = [method for method in (*self.methods, *self.better_than) if method not in runs]
        if missing:
            return Finding(self, None, f"not judged: {', '.join(missing)} did not run")
        broken = [method for method in (*self.methods, *self.better_than) if _broken(runs[method])]
        if broken:
            return Finding(self, False, f"{', '.join(broken)} diverged")
        return self._race(runs) if self.better_than else self._reach(runs, self.round or rounds)

    def _race(self, runs: Mapping[str, Sequence[Run]]) -> Finding:
        """Whether the worst of the methods is ahead of the best of the others, round by round."""
        ours = [mean_curve(runs[method], self.metric) for method in self.methods]
        theirs = [mean_curve(runs[method], self.metric) for method in self.better_than]
        first, last = self.rounds or (1, 10**9)
        shared = set.intersection(*(set(curve) for curve in (*ours, *theirs)))
        shown = sorted(r for r in shared if first <= r <= last)
        if not shown:
            return Finding(self, None, f"not judged: no round between {first} and {last} was recorded")
        sign = -1.0 if higher_is_better(self.metric) else 1.0
        lead = {r: min(sign * t[r] for t in theirs) - max(sign * o[r] for o in ours) for r in shown}
        ahead = [r for r in shown if lead[r] > 0]
        evidence = f"ahead at {len(ahead)} of the {len(shown)} recorded rounds from {shown[0]} to {shown[-1]}"
        if len(ahead) < len(shown):
            behind = [r for r in shown if lead[r] <= 0]
            which = f"round {behind[0]}" if len(behind) == 1 else f"rounds {behind[0]} to {behind[-1]}"
            evidence += f"; not at {which if len(behind) < 3 else f'{len(behind)} of {which}'}"
        return Finding(self, len(ahead) >= self.share * len(shown), evidence)

    def _reach(self, runs: Mapping[str, Sequence[Run]], round: int) -> Finding:
        """Whether the metric is on the right side of the number after ``round`` rounds."""
        values = {}
        for method in self.methods:
            curve = mean_curve(runs[method], self.metric)
            if round not in curve:
                return Finding(self, None, f"not judged: round {round} was not recorded")
            values[method] = curve[round]
        low = -np.inf if self.at_least is None else self.at_least
        high = np.inf if self.at_most is None else self.at_most
        holds = all(low <= value <= high for value in values.values())
        told = ", ".join(f"{method} {value:.4g}" for method, value in values.items())
        return Finding(self, holds, f"at round {round}: {told}")


@dataclass(frozen=True)
class Finding:
    """Whether a claim held (None: could not be judged), and the numbers that say so."""

    claim: Claim
    holds: bool | None
    evidence: str

    @property
    def mark(self) -> str:
        """✓, ✗ or –."""
        return "–" if self.holds is None else "✓" if self.holds else "✗"


def mean_curve(runs: Sequence[Run], metric: str) -> dict[int, float]:
    """Round to the mean over runs, at rounds that all of them recorded."""
    recorded = [dict(zip(run.history["round"].tolist(), run.history[metric], strict=True)) for run in runs]
    shared = set.intersection(*map(set, recorded))
    return {int(r): float(np.mean([curve[r] for curve in recorded])) for r in shared}


def _broken(runs: Sequence[Run]) -> bool:
    return any(run.status == Status.DIVERGED for run in runs)
