"""The runs of an experiment as jobs: each saved to a file of its own, each resumable."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unpooled.experiments.experiment import Experiment, read
from unpooled.experiments.sources import Split
from unpooled.experiments.sweep import SweepStudy, read_study
from unpooled.runs.run import Run, Status
from unpooled.runs.runfile import load


@dataclass(frozen=True)
class Job(ABC):
    """One run, and the file that it is saved to."""

    experiment: str
    method: str
    seed: int
    file: Path
    options: tuple[tuple[str, Any], ...]  # for simulate
    resume: bool

    def run(self) -> Run:
        """Run it, or take it from its file where it is complete."""
        options = dict(self.options)
        if self.resume and self.file.is_file():
            saved = load(self.file)
            whole = saved.settings["rounds"] == options.get("rounds", saved.settings["rounds"])
            if saved.status != Status.INTERRUPTED and whole:
                return saved
            options["resume"] = saved
        return self.perform(checkpoint=self.file, **options)

    @abstractmethod
    def perform(self, **options: Any) -> Run:
        """Run it with these options for ``simulate``."""


@dataclass(frozen=True)
class MethodJob(Job):
    """One method of an experiment on one seed."""

    data: Path | None

    def perform(self, **options: Any) -> Run:
        """Run the method on the seed's data."""
        data = split(self.experiment, self.seed, self.data)
        return read(self.experiment).run(self.method, data, self.seed, **options)


@dataclass(frozen=True)
class PointJob(Job):
    """One method of a study's sweep, at one x, on one seed."""

    sweep: str
    index: int

    def perform(self, **options: Any) -> Run:
        """Run the method at this x."""
        sweep = read_study(self.experiment).sweeps[self.sweep]
        return sweep.run(self.method, self.index, self.seed, **options)


@functools.lru_cache(maxsize=2)
def split(experiment: str, seed: int, data: Path | None) -> Split:
    """The data of the seed at hand, loaded once for all its methods."""
    return read(experiment).split(seed, data)


def method_jobs(
    experiment: Experiment,
    methods: Sequence[str],
    seeds: int,
    folder: Path,
    data: Path | None,
    options: Mapping[str, Any],
    resume: bool,
) -> list[MethodJob]:
    """Every method on every seed."""
    chosen = tuple({**experiment.options, **options}.items())
    return [
        MethodJob(experiment.name, method, seed, _file(folder, method, seed), chosen, resume, data)
        for seed in range(seeds)
        for method in methods
    ]


def point_jobs(
    study: SweepStudy, methods: Sequence[str], seeds: int | None, quick: bool, folder: Path, resume: bool
) -> list[PointJob]:
    """Every method at every x of every sweep; ``seeds`` None takes each sweep's own count."""
    jobs = []
    for sweep in study.sweeps.values():
        count = seeds or (sweep.quick_seeds if quick else sweep.seeds)
        for method in (m for m in sweep.methods if m in methods):
            for index, x in enumerate(sweep.x):
                for seed in range(count):
                    file = _file(folder / sweep.name, f"{method}-at-{x:g}", seed)
                    jobs.append(PointJob(study.name, method, seed, file, (), resume, sweep.name, index))
    return jobs


def _file(folder: Path, label: str, seed: int) -> Path:
    return folder / f"{slug(label)}-seed{seed}.run"


def slug(label: str) -> str:
    """A label as a file name."""
    return "".join(c if c.isalnum() or c in "-." else "_" for c in label)
