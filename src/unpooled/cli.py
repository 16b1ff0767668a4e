"""The command line."""

from __future__ import annotations

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


@app.command()
def reproduce(
    name: Annotated[str, typer.Argument(help="The experiment: lasso or lowrank.")] = "lasso",
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds to average over.")] = 3,
    out_dir: Annotated[Path, typer.Option("--out", help="Where figure and runs go.")] = Path("out"),
    methods: Annotated[
        list[str] | None, typer.Option("--method", help="Only this method; may be repeated.")
    ] = None,
) -> None:
    """Run an experiment of the paper and compare it with the expected values."""
    from unpooled.experiments import read
    from unpooled.experiments.verdict import compare

    try:
        experiment = read(name)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="NAME") from None
    chosen = methods or list(experiment.methods)
    unknown = [method for method in chosen if method not in experiment.methods]
    if unknown:
        raise typer.BadParameter(
            f"{unknown[0]} is not one of {', '.join(experiment.methods)}", param_hint="--method"
        )
    folder = out_dir / name
    folder.mkdir(parents=True, exist_ok=True)
    options = experiment.options
    out.print(
        f"[bold]{experiment.title}[/] ({experiment.figure} of Bao et al. 2022)\n"
        f"{len(chosen)} methods, {options['rounds']} rounds, {options['cohort']} clients a round, "
        f"{seeds} seed{'s' if seeds > 1 else ''}"
    )
    runs: dict[str, list[Run]] = {method: [] for method in chosen}
    for seed in range(seeds):
        data = experiment.data(seed)
        for method in chosen:
            run = experiment.run(method, data, seed)
            run.save(folder / f"{method}-seed{seed}.run")
            runs[method].append(run)
            out.print(f"  {method:<11} seed {seed}: {run.status} in {run.seconds:.1f} s; {run.ledger}")
    comparisons = compare(experiment, runs)
    out.print(_table(experiment, comparisons))
    held = sum(c.holds for c in comparisons)
    verdict = (
        "[green]all within tolerance[/]"
        if held == len(comparisons)
        else "[yellow]not all within tolerance[/]"
    )
    out.print(f"{held} of {len(comparisons)} values agree with the expected ones: {verdict}")
    out.print(f"Runs: {folder.resolve()}", soft_wrap=True)
    try:
        from unpooled.plot import experiment_figure

        for suffix in ("png", "pdf"):
            figure = experiment_figure(experiment, runs, folder / f"{name}.{suffix}")
        out.print(f"Figure: {figure.with_suffix('.png').resolve()} (and .pdf)", soft_wrap=True)
    except ImportError:
        out.print("No figure: matplotlib is missing, pip install 'unpooled\\[plot]' brings it")


def _table(experiment: Experiment, comparisons: list[Comparison]) -> Table:
    """Measured values by method and round, the expected ones behind them."""
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
