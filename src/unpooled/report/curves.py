"""A method's curve: the mean over its runs with their range, thinned to what a screen can show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unpooled.kernels.arrays import Array
from unpooled.report.numbers import plain
from unpooled.runs.run import Run

MOST_POINTS = 800
BUCKETS = 100  # each keeps up to four extremes; the rest of the points are spread evenly


@dataclass(frozen=True)
class Curve:
    """One metric of one method. ``runs`` says over how many runs each point is taken."""

    rounds: Array
    mean: Array
    low: Array
    high: Array
    runs: Array

    def __len__(self) -> int:
        return len(self.rounds)

    def plain(self) -> dict[str, Any]:
        """For the page's data; the range is left out where it is the mean."""
        data: dict[str, Any] = {
            "round": [int(r) for r in self.rounds],
            "mean": [plain(v) for v in self.mean],
        }
        if len(self) and self.runs.max() > 1:
            data["low"] = [plain(v) for v in self.low]
            data["high"] = [plain(v) for v in self.high]
        if len(self) and self.runs.min() < self.runs.max():
            data["runs"] = [int(n) for n in self.runs]
        return data


def rounds_of(run: Run) -> Array:
    """The recorded rounds; none where the very start had no finite objective."""
    return np.asarray(run.history.get("round", np.zeros(0, dtype=np.int64)))


def average(runs: Sequence[Run], metric: str) -> Curve:
    """Mean, minimum and maximum at the rounds that every run that got so far has recorded.

    A run that ended early leaves the mean where it ended; nothing is interpolated.
    """
    recorded = [(rounds_of(run), np.asarray(run.history[metric], dtype=float)) for run in runs
                if len(rounds_of(run)) and metric in run.history]  # fmt: skip
    if not recorded:
        nothing = np.zeros(0)
        return Curve(np.zeros(0, dtype=np.int64), nothing, nothing, nothing, np.zeros(0, dtype=np.int64))
    union = np.unique(np.concatenate([rounds for rounds, _ in recorded]))
    alive = np.array([union <= rounds[-1] for rounds, _ in recorded])
    has = np.array([np.isin(union, rounds) for rounds, _ in recorded])
    keep = (has | ~alive).all(axis=0) & has.any(axis=0)
    union, alive = union[keep], alive[:, keep]
    values = np.zeros((len(recorded), len(union)))
    for row, (rounds, column) in enumerate(recorded):
        values[row, alive[row]] = column[np.isin(rounds, union)]
    count = alive.sum(axis=0)
    with np.errstate(all="ignore"):
        mean = np.where(alive, values / count, 0.0).sum(axis=0)
    low, high = (np.where(alive, values, fill) for fill in (np.inf, -np.inf))
    return Curve(union, mean, low.min(axis=0), high.max(axis=0), count)


def thin(curve: Curve, most: int = MOST_POINTS) -> Curve:
    """At most so many points: first, last, an even spread, and the extremes of every stretch."""
    n = len(curve)
    if n <= most:
        return curve
    buckets = max(1, min(BUCKETS, most // 8))
    kept = [np.linspace(0, n - 1, most - 4 * buckets).round().astype(int)]
    lowest, highest = (np.where(np.isfinite(column), column, fill)
                       for column, fill in ((curve.low, np.inf), (curve.high, -np.inf)))  # fmt: skip
    trough, crest = (np.where(np.isfinite(curve.mean), curve.mean, fill) for fill in (np.inf, -np.inf))
    for part in np.array_split(np.arange(n), buckets):
        extremes = [
            lowest[part].argmin(),
            highest[part].argmax(),
            trough[part].argmin(),
            crest[part].argmax(),
        ]
        kept.append(part[extremes])
    at = np.unique(np.concatenate(kept))
    return Curve(curve.rounds[at], curve.mean[at], curve.low[at], curve.high[at], curve.runs[at])


def log_by_default(curves: Sequence[Curve]) -> bool:
    """Whether a metric is positive throughout and spans more than a factor of twenty."""
    finite = [c.mean[np.isfinite(c.mean)] for c in curves]
    values = np.concatenate(finite) if finite else np.zeros(0)
    with np.errstate(over="ignore"):
        return bool(len(values) and values.min() > 0 and values.max() > 20 * values.min())
