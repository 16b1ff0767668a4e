"""Write results as tidy CSV files, one number per row."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from unpooled.experiments.sweep import Line
from unpooled.runs.run import Run


def write_history(path: Path, runs: Mapping[str, Sequence[Run]]) -> Path:
    """All histories: method, seed, round, metric, value."""
    rows = (
        [method, run.seed, int(r), metric, repr(float(value))]
        for method, method_runs in runs.items()
        for run in method_runs
        for metric, column in run.history.items()
        if metric != "round"
        for r, value in zip(run.history["round"], column, strict=True)
    )
    return _write(path, ["method", "seed", "round", "metric", "value"], rows)


def write_results(path: Path, lines: Sequence[Line]) -> Path:
    """The end results of sweeps: sweep, method, x, seed, quantity, value."""
    rows = (
        [line.sweep.name, line.method, repr(x), seed, line.sweep.quantity, repr(value)]
        for line in lines
        for x, values in zip(line.sweep.x, line.values, strict=True)
        for seed, value in enumerate(values)
    )
    return _write(path, ["sweep", "method", "x", "seed", "quantity", "value"], rows)


def _write(path: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows(rows)
    return path
