"""Run an experiment: every method on every seed, saved one file each, resumable, in parallel if asked."""

from __future__ import annotations

import csv
import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from unpooled.engines import Local
from unpooled.experiments.experiment import Experiment, read
from unpooled.experiments.sources import Split
from unpooled.run import Run, Status
from unpooled.runfile import load


@dataclass(frozen=True)
class Job:
    """One method on one seed, and the file that its run is saved to."""

    experiment: str
    method: str
    seed: int
    file: Path
    data: Path | None
    options: tuple[tuple[str, Any], ...]  # for simulate
    resume: bool

    def run(self) -> Run:
        """Run it, or take it from its file where it is complete."""
        options = dict(self.options)
        if self.resume and self.file.is_file():
            saved = load(self.file)
            if saved.status != Status.INTERRUPTED and saved.settings["rounds"] == options["rounds"]:
                return saved
            options["resume"] = saved
        experiment = read(self.experiment)
        data = split(self.experiment, self.seed, self.data)
        return experiment.run(self.method, data, self.seed, checkpoint=self.file, **options)


@functools.lru_cache(maxsize=1)
def split(experiment: str, seed: int, data: Path | None) -> Split:
    """The data of the seed at hand, loaded once for all its methods."""
    return read(experiment).split(seed, data)


def jobs(
    experiment: Experiment,
    methods: Sequence[str],
    seeds: int,
    folder: Path,
    data: Path | None,
    options: Mapping[str, Any],
    resume: bool,
) -> list[Job]:
    """Every method on every seed."""
    chosen = tuple({**experiment.options, **options}.items())
    return [
        Job(experiment.name, method, seed, folder / f"{slug(method)}-seed{seed}.run", data, chosen, resume)
        for seed in range(seeds)
        for method in methods
    ]


def carry_out(todo: Sequence[Job], workers: int) -> Iterator[tuple[Job, Run]]:
    """Run the jobs one after the other on all cores, or ``workers`` at a time on one thread each."""
    if workers == 1:
        for job in todo:
            yield job, job.run()
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from zip(todo, pool.map(_alone, todo), strict=True)


def _alone(job: Job) -> Run:
    """A job in a process of its own: one thread, no bar."""
    options = {**dict(job.options), "engine": Local(threads=1), "progress": False}
    return dataclasses.replace(job, options=tuple(options.items())).run()


def write_history(path: Path, runs: Mapping[str, Sequence[Run]]) -> Path:
    """All histories as one tidy table: method, seed, round, metric, value."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["method", "seed", "round", "metric", "value"])
        for method, method_runs in runs.items():
            for run in method_runs:
                for metric, column in run.history.items():
                    if metric != "round":
                        for r, value in zip(run.history["round"], column, strict=True):
                            writer.writerow([method, run.seed, int(r), metric, repr(float(value))])
    return path


def slug(label: str) -> str:
    """A label as a file name."""
    return "".join(c if c.isalnum() or c in "-." else "_" for c in label)
