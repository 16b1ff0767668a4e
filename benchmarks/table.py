"""The table: on the terminal, as JSON, and as Markdown that can be pasted into docs/performance.md."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from benchmarks.row import Row

COLOURS = {"met": "green", "missed": "red", "": "default"}


def terminal(rows: Sequence[Row]) -> Table:
    """For rich to print."""
    table = Table("", "measured", "target", "", "detail", box=SIMPLE)
    for section, group in _sections(rows):
        table.add_section()
        table.add_row(f"[bold]{section}[/]")
        for row in group:
            verdict, detail = Text(row.verdict, COLOURS[row.verdict]), Text(row.detail, "dim")
            table.add_row(Text(row.name), row.shown_value, row.shown_target, verdict, detail)
    return table


def write(rows: Sequence[Row], machine: Mapping[str, Any], folder: Path) -> tuple[Path, Path]:
    """bench.json and bench.md in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    as_json, as_markdown = folder / "bench.json", folder / "bench.md"
    found = [{**asdict(row), "met": row.met} for row in rows]
    as_json.write_text(json.dumps({"machine": machine, "rows": found}, indent=2, ensure_ascii=False) + "\n")
    as_markdown.write_text("\n".join(markdown(rows, machine)) + "\n")
    return as_json, as_markdown


def markdown(rows: Sequence[Row], machine: Mapping[str, Any]) -> Iterator[str]:
    """Line by line."""
    yield "Measured on: " + ", ".join(f"{name} {value}" for name, value in machine.items() if value) + "."
    for section, group in _sections(rows):
        yield from ("", f"### {section}", "", "| | measured | target | | detail |", "|---|---|---|---|---|")
        for row in group:
            yield (
                "| "
                + " | ".join((row.name, row.shown_value, row.shown_target, row.verdict, row.detail))
                + " |"
            )


def _sections(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    for section, group in groupby(rows, key=lambda row: row.section):
        yield section, list(group)
