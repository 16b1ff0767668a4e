"""An experiment is data: generator, problem, methods with their settings, metrics, expected values."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from unpooled import algorithms, datasets, losses, metrics, penalties
from unpooled.algorithms.base import Algorithm
from unpooled.arrays import Float
from unpooled.data import FederatedData
from unpooled.problem import Problem
from unpooled.run import Run
from unpooled.simulate import simulate

METRICS: dict[str, Callable[[Any], Callable[..., float]]] = {
    "l2": lambda data: metrics.l2_error(data.truth),
    "l1": lambda data: metrics.l1_error(data.truth),
    "f1": lambda data: metrics.support_f1(data.truth),
    "frobenius": lambda data: metrics.frobenius_error(data.truth),
    "operator": lambda data: metrics.operator_error(data.truth),
    "rank": lambda data: metrics.rank(),
    "mse": lambda data: metrics.mse(data),
}


@dataclass(frozen=True)
class Experiment:
    """One figure of the paper, as its file describes it."""

    name: str
    title: str
    figure: str
    problem: Problem
    methods: dict[str, Algorithm]
    options: dict[str, Any]  # rounds, cohort, batch_size, every
    metrics: dict[str, str]  # name to label
    expected: dict[str, Any]
    generator: Callable[..., FederatedData]
    arguments: dict[str, Any]  # of the generator

    def data(self, seed: int) -> FederatedData:
        """The data of a seed."""
        return self.generator(seed=seed, **self.arguments)

    def start(self, data: FederatedData, seed: int) -> Float:
        """The common start of all methods."""
        return np.asarray(datasets.gaussian_start(data, seed=seed), dtype=np.float64)

    def run(self, method: str, data: FederatedData, seed: int, **options: Any) -> Run:
        """One method on one seed; ``options`` go to ``simulate`` and override the file's."""
        measured = {name: METRICS[name](data) for name in self.metrics}
        start = self.start(data, seed)
        settings = {**self.options, "seed": seed, "w0": start, "metrics": measured, **options}
        return simulate(self.methods[method], self.problem, data, **settings)


def available() -> list[str]:
    """The names of the experiments."""
    return sorted(file.name[:-5] for file in files(__package__).iterdir() if file.name.endswith(".toml"))


def read(name: str) -> Experiment:
    """The experiment of this name."""
    if name not in available():
        raise ValueError(f"there is no experiment {name!r}; there are {', '.join(available())}")
    file = tomllib.loads((files(__package__) / f"{name}.toml").read_text("utf-8"))
    loss, penalty = file["problem"].pop("loss"), file["problem"].pop("penalty")
    data, run = dict(file["data"]), dict(file["run"])
    if run.pop("start") != "gaussian":
        raise ValueError(f"{name}.toml: the only start is 'gaussian'")
    return Experiment(
        name=name,
        title=file["title"],
        figure=file["figure"],
        problem=Problem(getattr(losses, loss)(), getattr(penalties, penalty)(**file["problem"])),
        methods={label: _algorithm(method) for label, method in file["methods"].items()},
        options=run,
        metrics=file["metrics"],
        expected=file["expected"],
        generator=getattr(datasets, data.pop("generator")),
        arguments=data,
    )


def _algorithm(method: dict[str, Any]) -> Algorithm:
    """An algorithm from its table; local_steps is the paper's 10 where it does not say."""
    settings = {"local_steps": 10, **method}
    kind: Any = getattr(algorithms, settings.pop("algorithm"))
    algorithm: Algorithm = kind(**settings)
    return algorithm
