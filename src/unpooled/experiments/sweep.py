"""A study of rates is data too: methods run at every value of one quantity, and how the end result scales.

Each sweep is a table of its experiment's file. ``x`` lists the values on the horizontal axis; a setting
that changes with x is written ``{ each = […] }``, one value for each x. A method's ``slope`` is the range
that its fitted log-log slope is expected in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from unpooled import losses, penalties
from unpooled.experiments.experiment import METRICS, make_algorithm, table
from unpooled.experiments.noisy_quadratic import NoisyQuadratic
from unpooled.experiments.sources import SOURCES
from unpooled.problem import Problem
from unpooled.runs.run import Run, Status
from unpooled.runs.simulate import simulate

LOSSES = {"NoisyQuadratic": NoisyQuadratic}  # besides the library's


@dataclass(frozen=True)
class Sweep:
    """One panel: a quantity after the last round, for several methods, against x on logarithmic axes."""

    name: str
    title: str
    x_label: str
    label: str  # of the quantity
    quantity: str  # a metric
    x: tuple[float, ...]
    seeds: int
    quick_seeds: int
    methods: dict[str, dict[str, Any]]
    slopes: dict[str, tuple[float, float]]
    tables: dict[str, dict[str, Any]]  # data, problem, run
    bound: tuple[float, ...] | None  # a theorem's upper bound on the quantity at each x
    bound_label: str

    def run(self, method: str, index: int, seed: int, **options: Any) -> Run:
        """A method at the ``index``-th x; ``options`` go to ``simulate``."""
        data, problem, settings = (at(self.tables[name], index) for name in ("data", "problem", "run"))
        split = SOURCES[data.pop("source")](seed, None, **data)
        loss, penalty = problem.pop("loss"), problem.pop("penalty")
        kind: Any = LOSSES.get(loss) or getattr(losses, loss)
        chosen = Problem(kind(), getattr(penalties, penalty)(**problem))
        algorithm = make_algorithm(at(self.methods[method], index))
        measured = {self.quantity: METRICS[self.quantity](split, chosen)}
        settings = {"seed": seed, "metrics": measured, "every": settings["rounds"], **settings, **options}
        return simulate(algorithm, chosen, split.train, **settings)

    def settings(self) -> list[tuple[str, str]]:
        """What the sweep ran, for a table."""
        return [(key, _text(value)) for table in self.tables.values() for key, value in table.items()]

    def method_settings(self) -> dict[str, list[tuple[str, str]]]:
        """Each method's settings, for a table."""
        return {name: [(k, _text(v)) for k, v in own.items()] for name, own in self.methods.items()}


@dataclass(frozen=True)
class Line:
    """A method's results along a sweep: one row of values (seeds) for each x, and the fitted slope."""

    sweep: Sweep
    method: str
    values: tuple[tuple[float, ...], ...]

    @property
    def mean(self) -> list[float]:
        """The mean over seeds at each x."""
        return [float(np.mean(v)) for v in self.values]

    @property
    def slope(self) -> float:
        """Of log mean against log x."""
        with np.errstate(all="ignore"):
            return float(np.polyfit(np.log(self.sweep.x), np.log(self.mean), 1)[0])

    @property
    def expected(self) -> tuple[float, float]:
        """The range that the slope is expected in."""
        return self.sweep.slopes[self.method]

    @property
    def holds(self) -> bool:
        """Whether it is."""
        return self.expected[0] <= self.slope <= self.expected[1]

    @property
    def within_bound(self) -> tuple[int, int] | None:
        """How many of how many results are within the bound."""
        if self.sweep.bound is None:
            return None
        each = [np.asarray(v) <= b for v, b in zip(self.values, self.sweep.bound, strict=True)]
        return int(sum(part.sum() for part in each)), int(sum(part.size for part in each))

    @property
    def share_of_bound(self) -> float | None:
        """The largest result, relative to its bound."""
        if self.sweep.bound is None:
            return None
        return max(max(v) / b for v, b in zip(self.values, self.sweep.bound, strict=True))


def lines(sweep: Sweep, runs: Mapping[tuple[str, int], Sequence[Run]]) -> list[Line]:
    """The methods' results, from runs by (method, index of x); a run that diverged counts as infinite."""
    found = []
    for method in dict.fromkeys(method for method, _ in runs):
        rows = (runs[method, index] for index in range(len(sweep.x)))
        found.append(Line(sweep, method, tuple(tuple(_last(run, sweep.quantity) for run in r) for r in rows)))
    return found


def _last(run: Run, quantity: str) -> float:
    return float("inf") if run.status == Status.DIVERGED else float(run.history[quantity][-1])


def at(table: Mapping[str, Any], index: int) -> dict[str, Any]:
    """A table of settings at the ``index``-th x."""
    return {key: value["each"][index] if _varies(value) else value for key, value in table.items()}


def make_sweep(name: str, table: Mapping[str, Any]) -> Sweep:
    """A sweep from its table."""
    x = tuple(map(float, table["x"]))
    methods = {label: dict(method) for label, method in table["methods"].items()}
    slopes = {label: tuple(method.pop("slope")) for label, method in methods.items()}
    for part in (*methods.values(), *(table[name] for name in ("data", "problem", "run"))):
        for key, value in part.items():
            if _varies(value) and len(value["each"]) != len(x):
                raise ValueError(f"{name}: {key} has {len(value['each'])} values for {len(x)} of x")
    bound = table.get("bound")
    return Sweep(
        name=name,
        title=table["title"],
        x_label=table["x_label"],
        label=table["label"],
        quantity=table["quantity"],
        x=x,
        seeds=table["seeds"],
        quick_seeds=table["quick_seeds"],
        methods=methods,
        slopes=slopes,
        tables={part: dict(table[part]) for part in ("data", "problem", "run")},
        bound=None if bound is None else tuple(map(float, bound["values"])),
        bound_label="" if bound is None else bound["label"],
    )


def _varies(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"each"}


def _text(value: Any) -> str:
    return ", ".join(f"{v:g}" for v in value["each"]) if _varies(value) else str(value)


@dataclass(frozen=True)
class SweepStudy:
    """Sweeps that belong together."""

    name: str
    title: str
    about: str
    provenance: dict[str, str]
    sweeps: dict[str, Sweep]


def is_study(name: str) -> bool:
    """Whether the experiment of this name is a study."""
    return "sweeps" in table(name)


@cache
def read_study(name: str) -> SweepStudy:
    """The study of this name."""
    file = table(name)
    sweeps = {key: make_sweep(key, sweep) for key, sweep in file["sweeps"].items()}
    return SweepStudy(name, file["title"], file["about"], file["provenance"], sweeps)
