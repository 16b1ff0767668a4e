"""Whether a reproduction agrees with the expected values, method by method and round by round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unpooled.experiments.experiment import Experiment
from unpooled.run import Run


@dataclass(frozen=True)
class Comparison:
    """One method at one round: the mean over seeds against the expected value."""

    method: str
    round: int
    measured: float
    expected: float
    tolerance: float

    @property
    def deviation(self) -> float:
        """measured / expected − 1."""
        return self.measured / self.expected - 1.0

    @property
    def holds(self) -> bool:
        """Whether the deviation is within the tolerance."""
        return bool(abs(self.deviation) <= self.tolerance)


def compare(experiment: Experiment, runs: Mapping[str, Sequence[Run]]) -> list[Comparison]:
    """Every expected value whose round was recorded, against the mean over the runs of its method."""
    expected, comparisons = experiment.expected, []
    if not expected:
        return []
    for method, method_runs in runs.items():
        if method not in expected["values"]:
            continue
        for r, value in zip(expected["rounds"], expected["values"][method], strict=True):
            at_r = [at_round(run, expected["metric"], r) for run in method_runs]
            if np.isnan(at_r).any():
                continue
            tolerance = expected["final" if r == expected["rounds"][-1] else "transient"]
            comparisons.append(Comparison(method, r, float(np.mean(at_r)), value, tolerance))
    return comparisons


def at_round(run: Run, metric: str, round: int) -> float:
    """A metric after so many rounds; NaN where it was not recorded."""
    found = np.flatnonzero(run.history["round"] == round)
    return float(run.history[metric][found[0]]) if len(found) else float("nan")
