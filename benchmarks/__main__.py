"""``python -m benchmarks``: measure, print one table, write it with the facts of the machine."""

from __future__ import annotations

import importlib
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks import machine, table
from benchmarks.options import Options
from benchmarks.row import Row

# A section is a module with ``rows(options)``, which yields the rows it measured.
SECTIONS = (
    "speed",
    "flower",
    "limit",
    "threads",
    "singular",
    "exact",
    "small_sites",
    "growth",
    "sparse",
    "latency",
    "drift",
)

BUSY = 0.5  # processes running before we begin

out, progress = Console(highlight=False, width=160), Console(stderr=True, highlight=False)


def main(
    only: Annotated[list[str] | None, typer.Option(help=f"A section: {', '.join(SECTIONS)}.")] = None,
    quick: Annotated[bool, typer.Option(help="Fewer repeats, a short drift, fewer sparse rows.")] = False,
    data: Annotated[Path | None, typer.Option(help="mnist_by_writer.npz, for the EMNIST-10 shape.")] = None,
    folder: Annotated[Path, typer.Option("--out", help="Where bench.json and bench.md go.")] = Path(
        "out/bench"
    ),
) -> None:
    """Measure unpooled: ratios, each from contenders that take turns in one process."""
    unknown = set(only or ()) - set(SECTIONS)
    if unknown:
        raise typer.BadParameter(f"no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    if data is not None and not data.exists():
        raise typer.BadParameter(f"there is no {data}")
    options, facts, rows = Options(quick, data), machine.facts(), list[Row]()
    if facts["load before"] > BUSY:
        progress.print(
            f"The load of this machine is {facts['load before']}: ratios will suffer from what else runs."
        )
    for section in (name for name in SECTIONS if not only or name in only):
        began = time.perf_counter()
        for row in importlib.import_module(f"benchmarks.{section}").rows(options):
            rows.append(row)
            progress.print(f"{section}: {row.name}: {row.shown_value} {row.verdict}", markup=False)
        facts[f"seconds for {section}"] = round(time.perf_counter() - began)
        written = table.write(rows, facts, folder)
    out.print(table.terminal(rows))
    out.print(f"Written to {' and '.join(map(str, written))}.")


if __name__ == "__main__":
    typer.run(main)
