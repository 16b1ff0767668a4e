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
from unpooled.study import commands, site_commands

if TYPE_CHECKING:
    from unpooled.report.reproduce import Outcome

app = typer.Typer(
    help="Sparse and low-rank models fitted to data that stays where it is.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(commands.app, name="study")
app.add_typer(site_commands.app, name="site")
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
        from unpooled.experiments.experiment import available, table

        shown = Table("name", "what it runs", box=SIMPLE)
        for name in available():
            shown.add_row(f"[bold]{name}[/]", f"{table(name)['title']}\n[dim]{table(name)['about']}[/]")
        shown.add_row("[bold]all[/]", "All of them, one after the other")
        out.print(shown)
        raise typer.Exit


@app.command()
def reproduce(
    name: Annotated[str, typer.Argument(help="The experiment, or all; --list shows them.")],
    list_: Annotated[
        bool, typer.Option("--list", callback=_list, is_eager=True, help="Describe the experiments.")
    ] = False,
    quick: Annotated[bool, typer.Option("--quick/--full", help="Run fewer rounds, or all.")] = False,
    seeds: Annotated[
        int | None, typer.Option(min=1, show_default="3, or what a sweep says", help="How many seeds.")
    ] = None,
    methods: Annotated[str, typer.Option(help="Only these methods, separated by commas.")] = "",
    honest: Annotated[
        bool, typer.Option("--honest", help="Include methods that the paper does not show.")
    ] = False,
    data: Annotated[Path | None, typer.Option(help="Folder of the data, for emnist10 and emnist62.")] = None,
    out_dir: Annotated[
        Path, typer.Option("--out", help="Output folder for runs, tables, figures and report.")
    ] = Path("out"),
    resume: Annotated[bool, typer.Option("--resume", help="Continue the runs saved in --out.")] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Number of parallel processes.")] = 1,
) -> None:
    """Run an experiment of the paper and compare it with the expected values."""
    from unpooled.experiments.experiment import available
    from unpooled.report import reproduce as work

    if name != "all" and name not in available():
        known = ", ".join([*available(), "all"])
        raise typer.BadParameter(f"unknown experiment {name!r}; choose from {known}", param_hint="NAME")
    chosen = tuple(method.strip() for method in methods.split(",")) if methods else ()
    for method in chosen:
        if method not in work.known_methods(name, honest):
            known = ", ".join(work.known_methods(name, honest))
            raise typer.BadParameter(f"{method} is not one of {known}", param_hint="--methods")
    request = work.ReproduceOptions(quick, seeds, chosen, honest, data, out_dir, resume, jobs)
    outcomes, missing = [], []
    try:
        for each in available() if name == "all" else [name]:
            try:
                outcomes.append(work.reproduce(each, request, out))
            except work.NoDataError as error:
                out.print(f"[red]No data for {each}:[/] {error}", soft_wrap=True)
                missing.append(each)
            if name == "all":
                out.print()
    except KeyboardInterrupt:
        again = request.command(name, resume=True)
        out.print(f"Interrupted. To resume: [bold]{again}[/]", soft_wrap=True)
        raise typer.Exit(130) from None
    if name == "all":
        _summary(outcomes, missing)
    elif missing:
        raise typer.Exit(2)


def _summary(outcomes: Sequence[Outcome], missing: Sequence[str]) -> None:
    """Print a table of the outcomes of several experiments."""
    table = Table("", "name", "verdict", "report", box=SIMPLE)
    for outcome in outcomes:
        mark = {True: "[green]✓[/]", False: "[red]✗[/]", None: ""}[outcome.passes]
        table.add_row(mark, f"[bold]{outcome.name}[/]", outcome.sentence, str(outcome.page))
    for name in missing:
        table.add_row("–", f"[bold]{name}[/]", "not run: needs --data", "")
    out.print(table)


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(help="Saved runs.", metavar="RUN…")],
    out_file: Annotated[Path, typer.Option("--out", help="The HTML file to write.")] = Path("report.html"),
    title: Annotated[str, typer.Option(help="Its heading.")] = "Federated runs",
) -> None:
    """Write one self-contained HTML page about saved runs and compare them."""
    from unpooled.report import grouped, write_report
    from unpooled.runs.runfile import load

    if out_file.is_dir():
        raise typer.BadParameter(f"{out_file} is a folder", param_hint="--out")
    try:
        groups = grouped([load(path) for path in runs])
    except (OSError, ValueError) as error:
        raise typer.BadParameter(str(error), param_hint="RUN") from None
    again = shlex.join(["unpooled", "report", *map(str, runs), "--out", str(out_file)])
    try:
        page = write_report(out_file, groups, title=title, commands=[again])
    except OSError as error:
        raise typer.BadParameter(str(error), param_hint="--out") from None
    out.print(f"Report: {page.resolve()}", soft_wrap=True)
