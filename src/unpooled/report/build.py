"""Putting the page together: one HTML file with its style, scripts and data inside."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shlex
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from unpooled._version import __version__
from unpooled.arrays import Array
from unpooled.experiments.experiment import Experiment
from unpooled.experiments.verdict import Comparison, compare
from unpooled.plot import LINEAR
from unpooled.report import headline, palette, sections, tables
from unpooled.report.payload import payload
from unpooled.run import Run

AGAINST_TRUTH = ("l2", "l1", "f1", "frobenius", "operator")  # metrics that need the truth
SCRIPTS = ("format.js", "scale.js", "chart.js", "curves.js", "estimate.js", "page.js")


def write_report(
    path: str | os.PathLike[str],
    groups: Mapping[str, Sequence[Run]],
    *,
    title: str,
    subtitle: str = "",
    labels: Mapping[str, str] | None = None,
    log: Mapping[str, bool] | None = None,
    references: Mapping[str, float] | None = None,
    reference_label: str = "reference",
    metric: str | None = None,
    verdict: Sequence[Comparison] | None = None,
    truth: Array | None = None,
    commands: Sequence[str] = (),
) -> Path:
    """Write one HTML file about runs: curves, estimates, verdict, costs and settings.

    Parameters
    ----------
    groups : a method's name to its runs, one a seed; ``grouped`` sorts loose runs.
    labels : metric name to label; labelled metrics come first.
    log : metric name to whether it starts on a logarithmic axis; chosen from the values where missing.
    references, reference_label : metric name to a value drawn as a line, such as the exact optimum's.
    metric : the one the headline speaks of and the page opens on; by default the first with a reference,
        else the objective.
    verdict : measured against expected values, from ``experiments.verdict.compare``.
    truth : the coefficients that generated the data of each method's first run.
    commands : how to run it again.
    """
    _check(groups, truth)
    labels, references = dict(labels or {}), dict(references or {})
    truth = None if truth is None else np.asarray(truth)
    if metric is None:
        metric = next(iter(references), "objective")
    label = labels.get(metric, metric)
    data = payload(
        groups, labels=labels, log=log, references=references, reference_label=reference_label, truth=truth,
        metric=metric,
    )  # fmt: skip
    style = palette.css() + _read("report.css")
    script = '"use strict";(() => {\n' + "".join(map(_read, SCRIPTS)) + "})();"
    leading = headline.leader(groups, metric, label)
    troubles = headline.troubles(groups)
    parts = {
        "title": escape(title),
        "subtitle": f'<p class="subtitle">{escape(subtitle)}</p>' if subtitle else "",
        "policy": f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'",
        "style": style,
        "script": script,
        "data": _embedded(data),
        "headline": escape(headline.headline(verdict, groups)),
        "judged": escape(headline.judged(verdict)),
        "leader": escape(leading),
        "troubles": sections.troubles(troubles),
        "facts": sections.facts(groups),
        "estimate": sections.estimate(data["estimate"], truth is not None),
        "verdict": sections.verdict(verdict, label),
        "ledger": tables.ledger_table(groups),
        "settings": tables.settings_table(groups),
        "notes": tables.notes_list(groups),
        "runs": tables.runs_table(groups),
        "versions": tables.versions_list(groups),
        "rerun": sections.rerun(commands),
        "version": escape(__version__),
    }
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(Template(_read("template.html")).substitute(parts), "utf-8", newline="\n")
    return path


def experiment_report(
    experiment: Experiment, groups: Mapping[str, Sequence[Run]], path: str | os.PathLike[str]
) -> Path:
    """The report of an experiment, with its verdict and optimum where it has them, and its truth."""
    _check(groups, None)
    expected, first = experiment.expected, next(iter(groups.values()))[0]
    settings = first.settings
    has_truth = any(metric in experiment.metrics for metric in AGAINST_TRUTH)
    return write_report(
        path,
        groups,
        title=experiment.title,
        subtitle=f"{experiment.about}: {settings['rounds']} rounds, {settings['cohort']} clients a round, "
        f"minibatches of {settings['batch_size']} rows",
        labels=experiment.metrics,
        log={name: name not in LINEAR for name in experiment.metrics},
        references={expected["metric"]: expected["optimum"]} if "optimum" in expected else None,
        reference_label="exact optimum",
        metric=expected.get("metric") or next(iter(experiment.metrics), None),
        verdict=compare(experiment, groups) if expected else None,
        truth=experiment.split(first.seed).train.truth if has_truth else None,
        commands=[rerun_command(experiment, groups)],
    )


def rerun_command(experiment: Experiment, groups: Mapping[str, Sequence[Run]]) -> str:
    """The command line that makes these runs again."""
    runs = [run for method in groups.values() for run in method]
    words = ["unpooled", "reproduce", experiment.name, "--seeds", str(1 + max(run.seed for run in runs))]
    rounds = runs[0].settings["rounds"]
    if rounds != experiment.options["rounds"] and rounds == experiment.quick.get("rounds"):
        words.append("--quick")
    if any(name in experiment.honest for name in groups):
        words.append("--honest")
    everything = [*experiment.methods, *(experiment.honest if "--honest" in words else ())]
    if set(groups) != set(everything):
        words += ["--methods", ",".join(groups)]
    if experiment.source == "emnist":
        words += ["--data", "FOLDER"]
    return shlex.join(words)


def _check(groups: Mapping[str, Sequence[Run]], truth: Array | None) -> None:
    if not groups:
        raise ValueError("a report needs at least one run, got no groups")
    for name, runs in groups.items():
        if isinstance(runs, Run) or not all(isinstance(run, Run) for run in runs):
            raise TypeError(f"group {name!r} must be a list of runs, got {runs!r:.200}")
        if not runs:
            raise ValueError(f"group {name!r} has no runs")
        seeds = [run.seed for run in runs]
        twice = next((seed for seed in seeds if seeds.count(seed) > 1), None)
        if twice is not None:
            raise ValueError(
                f"group {name!r} has two runs of seed {twice}; a group is one method with one run a seed "
                "(unpooled.report.grouped sorts runs into groups)"
            )
    if truth is not None:
        shapes = [runs[0].w.shape for runs in groups.values()]
        if np.shape(truth) not in shapes:
            raise ValueError(f"truth has shape {np.shape(truth)}, but the estimates have {shapes[0]}")


def _read(name: str) -> str:
    return (files("unpooled.report") / name).read_text("utf-8")


def _hash(source: str) -> str:
    """The source expression under which a content security policy lets exactly this text in."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


def _embedded(data: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    dumped = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        dumped = dumped.replace(character, f"\\u{ord(character):04x}")
    return dumped
