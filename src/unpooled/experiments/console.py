"""Terminal output of ``unpooled reproduce``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from unpooled._wording import part_of
from unpooled.experiments.experiment import Experiment
from unpooled.experiments.jobs import Job
from unpooled.experiments.sweep import Line
from unpooled.experiments.verdict import Comparison, Verdict
from unpooled.runs.progress import Shown
from unpooled.runs.run import Run

MANY = 40  # runs from which on only their number is told


class RunProgress(Shown):
    """Print one line per finished run; with many or parallel runs, show one progress bar instead."""

    def __init__(self, out: Console, total: int, alone: bool):
        self._out = out
        self._tells = total < MANY
        if out.is_terminal and not (alone and self._tells):
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                Progress,
                TextColumn,
                TimeElapsedColumn,
                TimeRemainingColumn,
            )

            columns = [MofNCompleteColumn(), TextColumn("runs"), BarColumn(), TimeElapsedColumn()]
            self._bar = Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=out)
            self._task = self._bar.add_task("", total=total)

    def add(self, job: Job, run: Run) -> None:
        """A run that ended."""
        if self._tells or run.status != "completed":
            told = f"{run.status} in {run.seconds:.1f} s; {run.ledger}"
            self._out.print(f"  {job.method:<11} seed {job.seed}: {told}")
        if self._bar is not None:
            self._bar.advance(self._task)


def show_verdict(
    out: Console, experiment: Experiment, runs: Mapping[str, Sequence[Run]], verdict: Verdict
) -> None:
    """The expected table, or what came out, and the claims."""
    out.print(_expected_table(experiment, verdict) if verdict.comparisons else _final_table(experiment, runs))
    for finding in verdict.findings:
        colour = {True: "green", False: "yellow", None: "dim"}[finding.holds]
        out.print(f"[{colour}]{finding.mark}[/] {finding.claim.text} [dim]({finding.claim.source})[/]")
        out.print(f"  [dim]{finding.evidence}[/]", soft_wrap=True)
        if finding.holds is False and finding.claim.why_not:
            out.print(f"  {finding.claim.why_not}")
    if verdict.sentence:
        colour = "green" if verdict.passes else "yellow"
        out.print(f"Verdict: [bold {colour}]{verdict.sentence}[/]")


def show_lines(out: Console, lines: Sequence[Line]) -> None:
    """Slopes of sweeps, and how often a bound held."""
    table = Table(title="fitted log-log slopes", title_justify="left", title_style="bold", box=SIMPLE)
    for head in ("sweep", "method", "slope", "expected", "within the bound"):
        table.add_column(head, justify="left" if head in ("sweep", "method") else "right")
    for line in lines:
        colour = "green" if line.holds else "red"
        expected = f"{line.expected[0]:g} to {line.expected[1]:g}"
        table.add_row(
            line.sweep.title, line.method, f"[{colour}]{line.slope:.3f}[/]", expected, bound_text(line)
        )
    out.print(table)
    colour = "green" if all(line.holds for line in lines) else "yellow"
    out.print(f"Verdict: [bold {colour}]{slopes_sentence(lines)}[/]")


def slopes_sentence(lines: Sequence[Line]) -> str:
    """How many slopes are as expected, and how often the bound held."""
    text = f"{part_of(sum(line.holds for line in lines), len(lines), 'fitted slope')} in the expected range"
    held = [line.within_bound for line in lines if line.within_bound is not None]
    if held:
        inside, total = (sum(counts) for counts in zip(*held, strict=True))
        text += f"; {part_of(inside, total, 'replication')} within the theorem's bound"
    return text


def bound_text(line: Line) -> str:
    """How many replications are within the bound, and how near the largest comes."""
    if line.within_bound is None or line.share_of_bound is None:
        return ""
    inside, total = line.within_bound
    return f"{inside} of {total} (largest {line.share_of_bound:.0%})"


def final(runs: Sequence[Run], metric: str) -> float:
    """The mean over runs of a metric's last value."""
    return sum(float(run.history[metric][-1]) for run in runs) / len(runs)


def _final_table(experiment: Experiment, runs: Mapping[str, Sequence[Run]]) -> Table:
    """Every metric at the end, where there is no table to compare with."""
    table = Table("method", title="at the end, mean over seeds", title_justify="left", box=SIMPLE)
    for label in experiment.metrics.values():
        table.add_column(label, justify="right")
    for method, method_runs in runs.items():
        table.add_row(method, *(f"{final(method_runs, metric):.4g}" for metric in experiment.metrics))
    return table


def _expected_table(experiment: Experiment, verdict: Verdict) -> Table:
    """Measured values by method and round, the expected ones below them, the gap to the optimum last."""
    label = experiment.metrics[experiment.expected["metric"]]
    title = f"{label} at round (expected)"
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE, padding=(0, 0, 0, 1))
    table.add_column("method", no_wrap=True)
    columns = list(dict.fromkeys((c.quantity, c.round) for c in verdict.comparisons))
    columns.sort(key=lambda column: (column[0] == "gap", column[1]))
    for quantity, r in columns:
        table.add_column("φ − φ*" if quantity == "gap" else str(r), justify="right")
    for method in dict.fromkeys(c.method for c in verdict.comparisons):
        cells = {(c.quantity, c.round): _cell(c) for c in verdict.comparisons if c.method == method}
        table.add_row(method, *(cells.get(column, "") for column in columns))
    return table


def _cell(c: Comparison) -> str:
    colour = "green" if c.holds else "red"
    shown = _short if c.quantity == "gap" else "{:.3g}".format
    return f"[{colour}]{shown(c.measured)}[/]\n[dim]({shown(c.expected)})[/]"


def _short(value: float) -> str:
    """2.4e-2."""
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"
