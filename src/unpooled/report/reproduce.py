"""Reproduce an experiment: run it, judge it, and write runs, tables, figures and a report."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from rich.console import Console

from unpooled._interrupt import Interrupt, recorded
from unpooled._wording import counted
from unpooled.experiments import console, csv_files
from unpooled.experiments.experiment import Experiment, available, read
from unpooled.experiments.jobs import Job, method_jobs, point_jobs, split
from unpooled.experiments.sweep import SweepStudy, is_study, lines, read_study
from unpooled.experiments.verdict import judge
from unpooled.experiments.workers import carry_out
from unpooled.runs.run import Run

J = TypeVar("J", bound=Job)
SEEDS = 3  # of an experiment, unless asked for otherwise


class NoDataError(Exception):
    """The experiment needs files that are not there; the message says which."""


@dataclass(frozen=True)
class ReproduceOptions:
    """The command-line options of ``unpooled reproduce``."""

    quick: bool = False
    seeds: int | None = None
    methods: tuple[str, ...] = ()
    honest: bool = False
    data: Path | None = None
    out: Path = Path("out")
    resume: bool = False
    jobs: int = 1

    def command(self, name: str, resume: bool = False) -> str:
        """The command line that asks for this."""
        words = ["unpooled", "reproduce", name]
        words += [] if self.seeds is None else ["--seeds", str(self.seeds)]
        words += ["--quick"] * self.quick + ["--honest"] * self.honest
        words += ["--methods", ",".join(self.methods)] if self.methods else []
        words += [] if self.data is None else ["--data", str(self.data)]
        words += [] if self.out == Path("out") else ["--out", str(self.out)]
        words += [] if self.jobs == 1 else ["--jobs", str(self.jobs)]
        return shlex.join(words + ["--resume"] * resume)


@dataclass(frozen=True)
class Outcome:
    """The outcome of an experiment."""

    name: str
    sentence: str  # the verdict
    passes: bool | None  # None where there is nothing to compare with
    page: Path


def reproduce(name: str, request: ReproduceOptions, out: Console) -> Outcome:
    """Run the experiment of this name. Raises ``ValueError``, ``NoDataError`` or ``KeyboardInterrupt``.

    Runs that were under way at an interrupt are saved.
    """
    with recorded() as interrupt:
        if is_study(name):
            outcome = _study(read_study(name), request, out, interrupt)
        else:
            outcome = _experiment(read(name), request, out, interrupt)
        interrupt.check()
    return outcome


def known_methods(name: str, honest: bool) -> list[str]:
    """The methods of an experiment; of all experiments for ``all``."""
    names = available() if name == "all" else [name]
    known: dict[str, None] = {}
    for each in names:
        if is_study(each):
            known |= {method: None for sweep in read_study(each).sweeps.values() for method in sweep.methods}
        else:
            known |= dict.fromkeys([*read(each).methods, *(read(each).honest if honest else ())])
    return list(known)


def _experiment(
    experiment: Experiment, request: ReproduceOptions, out: Console, interrupt: Interrupt
) -> Outcome:
    everything = [*experiment.methods, *(experiment.honest if request.honest else ())]
    chosen = [method for method in request.methods or everything if method in everything]
    options = {**experiment.options, **(experiment.quick if request.quick else {})}
    seeds = request.seeds or SEEDS
    folder = request.out / experiment.name
    try:
        what = split(experiment.name, 0, request.data).what
    except (FileNotFoundError, ValueError) as error:
        absent = "" if request.data else "--data is not given, and "
        raise NoDataError(f"{absent}{error}") from None
    folder.mkdir(parents=True, exist_ok=True)
    out.print(f"[bold]{experiment.title}[/]\n{experiment.about}\nData: {what}")
    size = f"{options['rounds']} rounds, {options['cohort']} clients a round"
    out.print(f"{counted(len(chosen), 'method')}, {size}, {counted(seeds, 'seed')}")
    todo = method_jobs(experiment, chosen, seeds, folder, request.data, options, request.resume)
    done = _carry_out(todo, request, out, interrupt)
    runs: dict[str, list[Run]] = {method: [] for method in chosen}
    for job in todo:
        runs[job.method].append(done[job])
    verdict = judge(experiment, runs, lambda seed: split(experiment.name, seed, request.data))
    console.show_verdict(out, experiment, runs, verdict)
    out.print(f"Runs: {folder.resolve()}", soft_wrap=True)
    table = csv_files.write_history(folder / "history.csv", runs)
    out.print(f"History: {table.resolve()}", soft_wrap=True)
    with _figures(out):
        from unpooled.report.plot import experiment_figure, weights_figure

        for suffix in ("pdf", "png"):
            figure = experiment_figure(
                experiment, runs, folder / f"{experiment.name}.{suffix}", verdict.optimum
            )
        out.print(f"Figure: {figure.resolve()} (and .pdf)", soft_wrap=True)
        if experiment.image is not None:
            best = min(runs, key=lambda method: console.final(runs[method], "objective"))
            title = f"What {best} learned, one picture a class"
            figure = weights_figure(runs[best][0], experiment.image, folder / "weights.png", title)
            out.print(f"Coefficients of {best} as pictures: {figure.resolve()}", soft_wrap=True)
    from unpooled.report import experiment_report

    page = experiment_report(
        experiment,
        runs,
        folder / f"{experiment.name}.html",
        verdict=verdict,
        split=split(experiment.name, 0, request.data),
        command=request.command(experiment.name),
    )
    out.print(f"Report: [bold]{page.resolve()}[/]", soft_wrap=True)
    return Outcome(experiment.name, verdict.sentence, verdict.passes if verdict.comparisons else None, page)


def _study(study: SweepStudy, request: ReproduceOptions, out: Console, interrupt: Interrupt) -> Outcome:
    folder = request.out / study.name
    methods = request.methods or known_methods(study.name, honest=False)
    todo = point_jobs(study, methods, request.seeds, request.quick, folder, request.resume)
    for parent in {job.file.parent for job in todo}:
        parent.mkdir(parents=True, exist_ok=True)
    out.print(f"[bold]{study.title}[/]\n{study.about}")
    out.print(f"{len(study.sweeps)} sweeps, {len(todo)} runs")
    done = _carry_out(todo, request, out, interrupt)
    found = []
    for sweep in study.sweeps.values():
        runs: dict[tuple[str, int], list[Run]] = {}
        for job in todo:
            if job.sweep == sweep.name:
                runs.setdefault((job.method, job.index), []).append(done[job])
        found += lines(sweep, runs)
    console.show_lines(out, found)
    table = csv_files.write_results(folder / "results.csv", found)
    out.print(f"Runs: {folder.resolve()}\nResults: {table.resolve()}", soft_wrap=True)
    with _figures(out):
        from unpooled.report.plot import study_figure

        for suffix in ("pdf", "png"):
            figure = study_figure(found, folder / f"{study.name}.{suffix}")
        out.print(f"Figure: {figure.resolve()} (and .pdf)", soft_wrap=True)
    from unpooled.report import study_report

    page = study_report(
        study, found, list(done.values()), folder / f"{study.name}.html", request.command(study.name)
    )
    out.print(f"Report: [bold]{page.resolve()}[/]", soft_wrap=True)
    return Outcome(study.name, console.slopes_sentence(found), all(line.holds for line in found), page)


def _carry_out(
    todo: Sequence[J], request: ReproduceOptions, out: Console, interrupt: Interrupt
) -> dict[J, Run]:
    """All jobs with their runs; says what each cost, or how many are done where there are many."""
    done: dict[J, Run] = {}
    interrupt.check()
    with (
        console.RunProgress(out, len(todo), alone=request.jobs == 1) as tally,
        contextlib.closing(carry_out(todo, request.jobs)) as work,
    ):
        for job, run in work:
            done[job] = run
            tally.add(job, run)
            interrupt.check()
    return done


@contextlib.contextmanager
def _figures(out: Console) -> Iterator[None]:
    """Figures need matplotlib; without it everything else is still there."""
    try:
        yield
    except ImportError:
        out.print("No figures: matplotlib is not installed (pip install 'unpooled\\[plot]')")
