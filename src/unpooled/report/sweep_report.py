"""The report of a study: each sweep a chart on logarithmic axes, its slopes beside the expected ones."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from unpooled.experiments.console import bound_text, slopes_sentence
from unpooled.experiments.sweep import Line, Sweep, SweepStudy
from unpooled.report import palette, sections, tables
from unpooled.report.build import render
from unpooled.report.numbers import duration, plain, significant, size, span, whole
from unpooled.report.plot import style_indices
from unpooled.report.tables import Html
from unpooled.runs.run import Run


def study_report(
    study: SweepStudy, lines: Sequence[Line], runs: Sequence[Run], path: str | os.PathLike[str], command: str
) -> Path:
    """Write one HTML file about a study; ``runs`` are all runs behind the lines."""
    sweeps = list({line.sweep.name: line.sweep for line in lines}.values())
    settings = "".join(_settings(sweep) for sweep in sweeps)
    return render(
        path,
        {
            "title": escape(study.title),
            "subtitle": f'<p class="subtitle">{escape(study.about)}</p>',
            "headline": escape(f"{slopes_sentence(lines)}."),
            "leader": "",
            "judged": "A slope is fitted to the logarithm of the mean over seeds against the logarithm of x.",
            "troubles": sections.troubles(_troubles(lines)),
            "progress": "Scaling",
            "facts": _facts(sweeps, runs),
            "estimate": "",
            "verdict": _slopes(lines),
            "ledger": _costs(lines, runs),
            "settings": settings + sections.provenance(study.provenance),
            "notes": "<p>A value set in braces in the study's file changes along the sweep.</p>",
            "versions": tables.versions_list(runs),
            "rerun": sections.rerun([command]),
        },
        payload(lines),
    )


def payload(lines: Sequence[Line]) -> dict[str, Any]:
    """Methods over all sweeps, and a tab with its own horizontal axis for each sweep."""
    sweeps = list({line.sweep.name: line.sweep for line in lines}.values())
    names = list(dict.fromkeys(line.method for line in lines))
    names += [sweep.bound_label for sweep in sweeps if sweep.bound is not None]
    seeds = max(len(values) for line in lines for values in line.values)
    methods = [
        {"name": name, **palette.style(index), "seeds": list(range(seeds)), "diverged": [], "interrupted": [],
         "localSteps": None, "bytesPerRound": None}
        for name, index in zip(names, style_indices(names), strict=True)
    ]  # fmt: skip
    return {
        "methods": methods,
        "metrics": [_panel(sweep, lines, names) for sweep in sweeps],
        "selected": 0,
        "referenceLabel": "",
        "estimate": None,
    }


def _panel(sweep: Sweep, lines: Sequence[Line], names: Sequence[str]) -> dict[str, Any]:
    mine = {line.method: line for line in lines if line.sweep is sweep}
    order = np.argsort(sweep.x)
    x = [sweep.x[i] for i in order]
    curves = []
    for name in names:
        if name in mine:
            values = [mine[name].values[i] for i in order]
            curve: dict[str, Any] = {"round": x, "mean": [plain(np.mean(v)) for v in values]}
            curve |= {"low": [plain(min(v)) for v in values], "high": [plain(max(v)) for v in values]}
        elif name == sweep.bound_label and sweep.bound is not None:
            curve = {"round": x, "mean": [plain(sweep.bound[i]) for i in order]}
        else:
            curve = {"round": [], "mean": []}
        curves.append(curve)
    return {
        "name": sweep.name,
        "label": f"{sweep.title}: {sweep.label}",
        "tab": sweep.title,
        "log": True,
        "reference": None,
        "x": {"label": sweep.x_label, "name": sweep.x_label},
        "curves": curves,
    }


def _slopes(lines: Sequence[Line]) -> str:
    rows = []
    for line in lines:
        mark = "✓" if line.holds else "✗ outside"
        low, high = line.expected
        expected = f"{significant(low, 3)} to {significant(high, 3)}"
        slope = Html(f'<span class="measured">{significant(line.slope, 3)} {mark}</span>')
        rows.append([line.sweep.title, line.method, slope, expected, bound_text(line)])
    head = ["Sweep", "Method", "Slope", "Expected", "Within the bound"]
    return (
        '<section aria-labelledby="verdict-heading"><h2 id="verdict-heading">Measured and expected</h2>'
        f"{tables.table('Fitted log-log slopes', head, rows, numeric=2)}</section>"
    )


def _facts(sweeps: Sequence[Sweep], runs: Sequence[Run]) -> str:
    return tables.definitions(
        [
            ("sweeps", whole(len(sweeps))),
            ("runs", whole(len(runs))),
            ("rounds a run", span([run.ledger.rounds for run in runs])),
            ("sent up, all runs", size(sum(run.ledger.bytes_up for run in runs))),
            ("sent down, all runs", size(sum(run.ledger.bytes_down for run in runs))),
            ("time, all runs", duration(sum(run.seconds for run in runs))),
        ]
    )


def _costs(lines: Sequence[Line], runs: Sequence[Run]) -> str:
    """Runs are in the order of the lines, x by x and seed by seed."""
    rows, start = [], 0
    for line in lines:
        count = sum(len(values) for values in line.values)
        mine = runs[start : start + count]
        start += count
        rows.append(
            [
                line.sweep.title,
                line.method,
                whole(count),
                span([run.ledger.rounds for run in mine]),
                size(sum(run.ledger.bytes_up for run in mine)),
                size(sum(run.ledger.bytes_down for run in mine)),
                duration(sum(run.seconds for run in mine)),
            ]
        )
    head = ["Sweep", "Method", "Runs", "Rounds", "Sent up", "Sent down", "Time"]
    return tables.table("Cost of all runs of a line", head, rows, numeric=2)


def _settings(sweep: Sweep) -> str:
    own = [(name, ", ".join(f"{k} {v}" for k, v in pairs)) for name, pairs in sweep.method_settings().items()]
    return f"<h3>{escape(sweep.title)}</h3>{tables.definitions([*sweep.settings(), *own])}"


def _troubles(lines: Sequence[Line]) -> list[str]:
    return [
        f"{line.sweep.title}, {line.method}: a run diverged."
        for line in lines
        if not np.isfinite([v for values in line.values for v in values]).all()
    ]
