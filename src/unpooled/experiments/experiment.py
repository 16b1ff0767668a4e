"""An experiment is data: its source, problem, methods with their settings, metrics, expected values."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from unpooled import algorithms, losses, penalties
from unpooled.algorithms.base import Algorithm
from unpooled.data import datasets
from unpooled.data.federated import FederatedData
from unpooled.exact.solve import solve
from unpooled.experiments.claims import Claim
from unpooled.experiments.sources import SOURCES, Split
from unpooled.kernels.arrays import Float
from unpooled.problem import Problem
from unpooled.runs import metrics
from unpooled.runs.run import Run
from unpooled.runs.simulate import simulate

TOLERANCE = 1e-10  # of the duality gap of the exact optimum, relative to its scale

METRICS: dict[str, Callable[[Any, Problem], Callable[..., float]]] = {
    "l2": lambda split, problem: metrics.l2_error(split.train.truth),
    "l1": lambda split, problem: metrics.l1_error(split.train.truth),
    "f1": lambda split, problem: metrics.support_f1(split.train.truth),
    "frobenius": lambda split, problem: metrics.frobenius_error(split.train.truth),
    "operator": lambda split, problem: metrics.operator_error(split.train.truth),
    "rank": lambda split, problem: metrics.rank(),
    "nonzeros": lambda split, problem: metrics.nonzeros(),
    "mse": lambda split, problem: metrics.mse(split.train),
    "train_loss": lambda split, problem: metrics.loss(split.train, problem),
    "test_loss": lambda split, problem: metrics.loss(split.test, problem),
    "train_accuracy": lambda split, problem: metrics.accuracy(split.train),
    "test_accuracy": lambda split, problem: metrics.accuracy(split.test),
    "gap": lambda split, problem: excess(problem, split.train),
}


def has_exact_optimum(problem: Problem) -> bool:
    """Whether it takes no time worth mentioning."""
    least_squares = problem.linear is not None and problem.linear.is_least_squares
    return (least_squares or hasattr(problem.loss, "optimum")) and not problem.intercept


def exact_optimum(problem: Problem, data: FederatedData) -> Float:
    """ŵ, in the shape of the coefficients."""
    if hasattr(problem.loss, "optimum"):
        return np.asarray(problem.loss.optimum(data, problem.penalty))
    return solve(problem, data, tol=TOLERANCE, min_rows=0).w


def excess(problem: Problem, data: FederatedData) -> metrics.Metric:
    """φ(w) − φ(ŵ), ŵ the exact optimum."""
    least = problem.objective(exact_optimum(problem, data), data)

    def gap(w: Any, intercept: Any = None) -> float:
        return problem.objective(w, data, intercept) - least

    return gap


@dataclass(frozen=True)
class Experiment:
    """One figure of the paper, or an experiment in its manner, as its file describes it."""

    name: str
    title: str
    about: str
    problem: Problem
    methods: dict[str, Algorithm]
    honest: dict[str, Algorithm]  # rows the paper does not show, behind --honest
    options: dict[str, Any]  # rounds, cohort, batch_size, every
    quick: dict[str, Any]  # what --quick changes in them
    start: str  # "zero" or "gaussian"
    metrics: dict[str, str]  # name to label
    expected: dict[str, Any]  # empty where there is no table
    claims: tuple[Claim, ...]  # what the paper says of it
    provenance: dict[str, str]  # where its numbers come from
    source: str
    arguments: dict[str, Any]  # of the source
    image: tuple[int, int] | None  # the shape of a row that is a picture

    def split(self, seed: int, path: Path | None = None) -> Split:
        """The data of a seed; ``path`` for experiments on files."""
        return SOURCES[self.source](seed, path, **self.arguments)

    def measured(self, split: Split) -> dict[str, Callable[..., float]]:
        """The metrics as functions of an estimate."""
        return {name: METRICS[name](split, self.problem) for name in self.metrics}

    def run(self, method: str, split: Split, seed: int, **options: Any) -> Run:
        """One method on one seed; ``options`` go to ``simulate`` and override the file's."""
        start = datasets.gaussian_start(split.train, seed=seed) if self.start == "gaussian" else None
        settings = {**self.options, "seed": seed, "w0": start, "metrics": self.measured(split), **options}
        return simulate((self.methods | self.honest)[method], self.problem, split.train, **settings)


def available() -> list[str]:
    """The names of the experiments."""
    return sorted(file.name[:-5] for file in files(__package__).iterdir() if file.name.endswith(".toml"))


def table(name: str) -> dict[str, Any]:
    """The experiment's file."""
    if name not in available():
        raise ValueError(f"there is no experiment {name!r}; there are {', '.join(available())}")
    return tomllib.loads((files(__package__) / f"{name}.toml").read_text("utf-8"))


@cache
def read(name: str) -> Experiment:
    """The experiment of this name."""
    file = table(name)
    data, problem, run = dict(file["data"]), dict(file["problem"]), dict(file["run"])
    loss, penalty = problem.pop("loss"), problem.pop("penalty")
    return Experiment(
        name=name,
        title=file["title"],
        about=file["about"],
        problem=Problem(getattr(losses, loss)(), getattr(penalties, penalty)(**problem)),
        methods=_algorithms(file, "methods"),
        honest=_algorithms(file, "honest"),
        start=run.pop("start"),
        options=run,
        quick=file.get("quick", {}),
        metrics=file["metrics"],
        expected=file.get("expected", {}),
        claims=tuple(_claim(claim) for claim in file.get("claims", ())),
        provenance=file.get("provenance", {}),
        source=data.pop("source"),
        arguments=data,
        image=tuple(file["image"]) if "image" in file else None,
    )


def make_algorithm(settings: dict[str, Any]) -> Algorithm:
    """An algorithm from a table of its class's name and its settings."""
    settings = dict(settings)
    kind: Any = getattr(algorithms, settings.pop("algorithm"))
    algorithm: Algorithm = kind(**settings)
    return algorithm


def _algorithms(file: dict[str, Any], part: str) -> dict[str, Algorithm]:
    """All methods of an experiment take the same number of local steps."""
    steps = {"local_steps": file["local_steps"]}
    return {label: make_algorithm(steps | method) for label, method in file.get(part, {}).items()}


def _claim(table: dict[str, Any]) -> Claim:
    settings: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in table.items()}
    return Claim(**settings)
