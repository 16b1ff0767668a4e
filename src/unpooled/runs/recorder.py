"""The history of a run: objective and metrics at the recorded rounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unpooled.algorithms.base import Algorithm, State
from unpooled.data.base import Data
from unpooled.kernels.arrays import Arrays
from unpooled.problem import BoundProblem
from unpooled.runs.run import Best, Run

Metric = Callable[..., float]
RISE = 0.01  # of what the objective had fallen by; a smaller rise counts as level


@dataclass
class Recorder:
    """Evaluates states. ``good`` is the last one whose objective was finite, ``best`` of the least one."""

    algorithm: Algorithm
    problem: BoundProblem
    data: Data
    metrics: Mapping[str, Metric]
    columns: dict[str, list[float]] = field(default_factory=dict)
    good: State | None = None
    best: Best | None = None
    least: float = math.inf

    def record(self, state: State) -> float:
        """Append a row and return the objective; a state without a finite one leaves no row."""
        w, intercept = self.problem.layout.unpack(self.algorithm.estimate(self.problem, state))
        objective = self.problem.problem.objective(w, self.data, intercept)
        if not math.isfinite(objective):
            return objective
        arguments = (w,) if intercept is None else (w, intercept)
        row: dict[str, Any] = {"round": state.round, "objective": objective}
        for name, metric in self.metrics.items():
            try:
                row[name] = float(metric(*arguments))
            except TypeError as error:
                given = "w" if intercept is None else "w and the intercept"
                error.add_note(f"The metric {name!r} is called with {given} and must return a number.")
                raise
        for name, value in row.items():
            self.columns.setdefault(name, []).append(value)
        self.good = state
        if objective < self.least:
            self.best, self.least = Best(state.round, objective, w, intercept), objective
        return objective

    def lacks(self, round: int) -> bool:
        """Whether this round, the last so far, has no row: an interrupt may have come before it."""
        rounds = self.history()["round"]
        return not len(rounds) or rounds[-1] != round

    def go_on(self, run: Run, every: int) -> None:
        """Take over the rows of a run to resume that an uninterrupted run would have had, and its best one.

        A file of an older version has no best iterate; then only one below all its rows counts as such.
        """
        history = run.history
        if history.keys() != self.history().keys():
            then, now = (", ".join(list(names)[2:]) or "none" for names in (history, self.history()))
            raise ValueError(f"the run to resume had other metrics: {then} then, {now} now")
        kept = np.asarray(history["round"]) % every == 0
        self.columns = {name: list(column[kept]) for name, column in history.items()}
        self.good, self.best = run.state, run.best
        self.least = float(np.min(history["objective"], initial=math.inf))

    def history(self) -> Arrays:
        """The columns as arrays; of a row that an interrupt left unfinished, nothing."""
        names = ("round", "objective", *self.metrics)
        columns = {name: self.columns.get(name, ()) for name in names}
        whole = min(map(len, columns.values()))
        kinds = {"round": np.int64}
        return {name: np.array(c[:whole], dtype=kinds.get(name, np.float64)) for name, c in columns.items()}


def risen(history: Arrays) -> str | None:
    """A sentence where the last recorded objective is well above the least one, and what can be done."""
    rounds, objective = history["round"], history["objective"]
    if not len(objective):
        return None
    best = int(np.argmin(objective))
    first, least, last = (float(objective[i]) for i in (0, best, -1))
    if last - least <= RISE * (first - least) + 1e-9 * abs(least):
        return None
    return (
        f"the objective has risen since round {rounds[best]}, from {least:.6g} to {last:.6g}: take a smaller "
        "step, fewer local steps, or a schedule that shrinks the steps; run.best is that round's iterate."
    )
