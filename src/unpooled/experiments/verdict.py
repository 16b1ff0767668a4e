"""Whether a reproduction agrees with the expected values, and which of the paper's claims held."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from unpooled._wording import part_of
from unpooled.experiments.claims import Finding, mean_curve
from unpooled.experiments.experiment import Experiment, exact_optimum, has_exact_optimum
from unpooled.experiments.sources import Split
from unpooled.runs.run import Run

GAP_FACTOR = 2.0  # φ − φ* is noise around its floor: it is compared in size


@dataclass(frozen=True)
class Comparison:
    """One method's mean over seeds of a quantity after some rounds, against the expected value."""

    method: str
    quantity: str
    round: int
    measured: float
    expected: float
    low: float  # the least and greatest measured/expected that agree
    high: float

    @property
    def deviation(self) -> float:
        """measured / expected − 1."""
        return self.measured / self.expected - 1.0

    @property
    def holds(self) -> bool:
        """Whether it is within the tolerance."""
        return bool(self.low <= self.measured / self.expected <= self.high)

    @property
    def tolerance(self) -> str:
        """The tolerance in words."""
        if self.high - 1.0 == 1.0 - self.low or np.isclose(self.high - 1.0, 1.0 - self.low):
            return f"±{100 * (self.high - 1.0):g}\u202f%"
        return f"a factor of {self.high:g}"


@dataclass(frozen=True)
class Verdict:
    """Everything that is judged of a reproduction."""

    comparisons: list[Comparison] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    optimum: dict[str, float] = field(default_factory=dict)  # each metric at ŵ, the mean over seeds

    @property
    def passes(self) -> bool:
        """Whether every value that could be compared agrees; claims are findings, not conditions."""
        return all(c.holds for c in self.comparisons)

    @property
    def sentence(self) -> str:
        """Both counts in one sentence; empty where nothing is judged."""
        parts = []
        if self.comparisons:
            held = sum(c.holds for c in self.comparisons)
            parts.append(
                f"{part_of(held, len(self.comparisons), 'value', 'agrees', 'agree')} with the expected ones"
            )
        judged = [f for f in self.findings if f.holds is not None and not f.claim.honest]
        if judged:
            held = sum(bool(f.holds) for f in judged)
            parts.append(f"{held} of {len(judged)} of the paper's claims held")
        return "; ".join(parts)


def judge(
    experiment: Experiment, runs: Mapping[str, Sequence[Run]], split_of: Callable[[int], Split]
) -> Verdict:
    """Compare runs with the experiment's expected values and claims; ``split_of`` gives a seed's data."""
    seeds = sorted({run.seed for method in runs.values() for run in method})
    at: dict[int, dict[str, float]] = {}
    if has_exact_optimum(experiment.problem):
        at = {seed: _at_optimum(experiment, split_of(seed)) for seed in seeds}
    best = {seed: values["objective"] for seed, values in at.items()}
    return Verdict(
        comparisons=[*compare(experiment, runs), *_compare_gaps(experiment, runs, best)],
        findings=[
            claim.judge(runs, experiment.options["rounds"])
            for claim in experiment.claims
            if not claim.honest or {*claim.methods, *claim.better_than} <= set(runs)
        ],
        optimum={name: float(np.mean([at[s][name] for s in seeds])) for name in (at[seeds[0]] if at else ())},
    )


def _at_optimum(experiment: Experiment, split: Split) -> dict[str, float]:
    """Every metric and the objective at ŵ."""
    w = exact_optimum(experiment.problem, split.train)
    values = {name: metric(w) for name, metric in experiment.measured(split).items()}
    return {**values, "objective": experiment.problem.objective(w, split.train)}


def compare(experiment: Experiment, runs: Mapping[str, Sequence[Run]]) -> list[Comparison]:
    """Every expected value whose round was recorded, against the mean over the runs of its method."""
    expected, comparisons = experiment.expected, []
    for method, values in expected.get("values", {}).items():
        curve = mean_curve(runs[method], expected["metric"]) if method in runs else {}
        for r, value in zip(expected["rounds"], values, strict=True):
            if r in curve:
                tolerance = expected["final" if r == expected["rounds"][-1] else "transient"]
                comparisons.append(
                    Comparison(method, expected["metric"], r, curve[r], value, 1 - tolerance, 1 + tolerance)
                )
    return comparisons


def _compare_gaps(
    experiment: Experiment, runs: Mapping[str, Sequence[Run]], best: Mapping[int, float]
) -> list[Comparison]:
    """φ − φ* after the last round, where the optimum of every seed is known."""
    last, comparisons = experiment.options["rounds"], []
    for method, expected in experiment.expected.get("gap", {}).items():
        gaps = [
            dict(zip(run.history["round"].tolist(), run.history["objective"], strict=True)).get(last, np.nan)
            - best.get(run.seed, np.nan)
            for run in runs.get(method, ())
        ]
        if gaps and np.isfinite(gaps).all():
            gap = float(np.mean(gaps))
            comparisons.append(Comparison(method, "gap", last, gap, expected, 1 / GAP_FACTOR, GAP_FACTOR))
    return comparisons
