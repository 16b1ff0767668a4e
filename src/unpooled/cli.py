"""The command line."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from unpooled._version import __version__

if TYPE_CHECKING:
    from unpooled.experiments import Experiment
    from unpooled.experiments.verdict import Comparison
    from unpooled.run import Run

app = typer.Typer(
    help="Sparse and low-rank models fitted to data that stays where it is.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
out = Console(highlight=False)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"unpooled {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Sparse and low-rank models fitted to data that stays where it is."""


def _list(asked: bool) -> None:
    if asked:
        from unpooled.experiments import available, read

        table = Table("name", "what it runs", box=SIMPLE)
        for name in available():
            table.add_row(f"[bold]{name}[/]", f"{read(name).title}\n[dim]{read(name).about}[/]")
        out.print(table)
        raise typer.Exit


@app.command()
def reproduce(
    name: Annotated[str, typer.Argument(help="The experiment; --list shows them.")],
    list_: Annotated[
        bool, typer.Option("--list", callback=_list, is_eager=True, help="Describe the experiments.")
    ] = False,
    quick: Annotated[bool, typer.Option("--quick/--full", help="Fewer rounds, or all of them.")] = False,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds to average over.")] = 3,
    methods: Annotated[str, typer.Option(help="Only these methods, separated by commas.")] = "",
    honest: Annotated[bool, typer.Option("--honest", help="Also rows that the paper does not show.")] = False,
    data: Annotated[Path | None, typer.Option(help="Folder of the data, for emnist10 and emnist62.")] = None,
    out_dir: Annotated[Path, typer.Option("--out", help="Where runs, table and figure go.")] = Path("out"),
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the runs that are in --out.")] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Processes that run methods and seeds in parallel.")] = 1,
) -> None:
    """Run an experiment of the paper and compare it with the expected values."""
    from unpooled.experiments import read
    from unpooled.experiments import reproduce as work
    from unpooled.experiments.verdict import compare

    try:
        experiment = read(name)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="NAME") from None
    known = {**experiment.methods, **(experiment.honest if honest else {})}
    chosen = [method.strip() for method in methods.split(",")] if methods else list(known)
    for method in chosen:
        if method not in known:
            raise typer.BadParameter(f"{method} is not one of {', '.join(known)}", param_hint="--methods")
    options = {**experiment.options, **(experiment.quick if quick else {})}
    folder = out_dir / name
    folder.mkdir(parents=True, exist_ok=True)
    try:
        what = work.split(name, 0, data).what
    except (FileNotFoundError, ValueError) as error:
        out.print(f"[red]No data:[/] {error}", soft_wrap=True)
        raise typer.Exit(2) from None
    out.print(f"[bold]{experiment.title}[/]\n{experiment.about}\nData: {what}")
    size = f"{options['rounds']} rounds, {options['cohort']} clients a round"
    out.print(f"{len(chosen)} methods, {size}, {_seeds(seeds)}")
    runs: dict[str, list[Run]] = {method: [] for method in chosen}
    todo = work.jobs(experiment, chosen, seeds, folder, data, options, resume)
    for job, run in work.carry_out(todo, jobs):
        out.print(f"  {job.method:<11} seed {job.seed}: {run.status} in {run.seconds:.1f} s; {run.ledger}")
        if run.status == "interrupted":
            again = ["unpooled", "reproduce", name, "--seeds", str(seeds), "--out", str(out_dir)]
            again += ["--quick"] * quick + ["--honest"] * honest + ["--methods", methods] * bool(methods)
            again += [] if data is None else ["--data", str(data)]
            out.print(f"Interrupted. To go on: [bold]{shlex.join([*again, '--resume'])}[/]", soft_wrap=True)
            raise typer.Exit(130)
        runs[job.method].append(run)
    _finish(experiment, runs, compare(experiment, runs), folder)


def _finish(
    experiment: Experiment, runs: dict[str, list[Run]], comparisons: list[Comparison], folder: Path
) -> None:
    """Print what came out and say where the files are."""
    from unpooled.experiments.reproduce import write_history

    if comparisons:
        out.print(_expected_table(experiment, comparisons))
        held = sum(c.holds for c in comparisons)
        colour, words = (
            ("green", "all within tolerance") if held == len(comparisons) else ("yellow", "not all")
        )
        out.print(f"{held} of {len(comparisons)} values agree with the expected ones: [{colour}]{words}[/]")
    else:
        out.print(_final_table(experiment, runs))
    out.print(f"Runs: {folder.resolve()}", soft_wrap=True)
    out.print(f"History: {write_history(folder / 'history.csv', runs).resolve()}", soft_wrap=True)
    from unpooled.report import experiment_report

    page = experiment_report(experiment, runs, folder / f"{experiment.name}.html")
    try:
        from unpooled.plot import experiment_figure, weights_figure

        for suffix in ("pdf", "png"):
            figure = experiment_figure(experiment, runs, folder / f"{experiment.name}.{suffix}")
        out.print(f"Figure: {figure.resolve()} (and .pdf)", soft_wrap=True)
        if experiment.image is not None:
            best = min(runs, key=lambda method: _mean(runs[method], "objective"))
            title = f"what {best} learned, one picture a class"
            figure = weights_figure(runs[best][0], experiment.image, folder / "weights.png", title)
            out.print(f"Coefficients of {best} as pictures: {figure.resolve()}", soft_wrap=True)
    except ImportError:
        out.print("No figure: matplotlib is missing, pip install 'unpooled\\[plot]' brings it")
    out.print(f"Report: [bold]{page.resolve()}[/]", soft_wrap=True)


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(help="Saved runs.", metavar="RUN…")],
    out_file: Annotated[Path, typer.Option("--out", help="The HTML file to write.")] = Path("report.html"),
    title: Annotated[str, typer.Option(help="Its heading.")] = "Federated runs",
) -> None:
    """Write one self-contained HTML page about saved runs and compare them."""
    from unpooled.report import grouped, write_report
    from unpooled.runfile import load

    try:
        groups = grouped([load(path) for path in runs])
        again = shlex.join(["unpooled", "report", *map(str, runs), "--out", str(out_file)])
        page = write_report(out_file, groups, title=title, commands=[again])
    except (FileNotFoundError, ValueError) as error:
        raise typer.BadParameter(str(error), param_hint="RUN") from None
    out.print(f"Report: {page.resolve()}", soft_wrap=True)


def _seeds(count: int) -> str:
    return f"{count} seed{'s' if count > 1 else ''}"


def _mean(runs: Sequence[Run], metric: str) -> float:
    return sum(float(run.history[metric][-1]) for run in runs) / len(runs)


def _final_table(experiment: Experiment, runs: dict[str, list[Run]]) -> Table:
    """Every metric at the end, where there is no table to compare with."""
    table = Table("method", title="at the end, mean over seeds", title_justify="left", box=SIMPLE)
    for label in experiment.metrics.values():
        table.add_column(label, justify="right")
    for method, method_runs in runs.items():
        table.add_row(method, *(f"{_mean(method_runs, metric):.4g}" for metric in experiment.metrics))
    return table


def _expected_table(experiment: Experiment, comparisons: list[Comparison]) -> Table:
    """Measured values by method and round, the expected ones below them."""
    label = experiment.metrics[experiment.expected["metric"]]
    table = Table(title=f"{label} at round (expected)", title_justify="left", title_style="bold", box=SIMPLE)
    table.add_column("method", no_wrap=True)
    rounds = sorted({c.round for c in comparisons})
    for r in rounds:
        table.add_column(str(r), justify="right")
    for method in dict.fromkeys(c.method for c in comparisons):
        cells = {c.round: c for c in comparisons if c.method == method}
        row = [_cell(cells[r]) if r in cells else "" for r in rounds]
        table.add_row(method, *row)
    return table


def _cell(c: Comparison) -> str:
    colour = "green" if c.holds else "red"
    return f"[{colour}]{c.measured:.3g}[/]\n[dim]({c.expected:.3g})[/]"
