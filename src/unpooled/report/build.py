"""Putting the page together: one HTML file with its style, scripts and data inside."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from unpooled._version import __version__
from unpooled.experiments.experiment import Experiment
from unpooled.experiments.sources import Split
from unpooled.experiments.verdict import Verdict
from unpooled.kernels.arrays import Array
from unpooled.report import palette, sections, sentences, tables
from unpooled.report.payload import payload
from unpooled.report.plot import LINEAR
from unpooled.runs.run import Run

AGAINST_TRUTH = ("l2", "l1", "f1", "frobenius", "operator")  # metrics that need the truth
SCRIPTS = ("format.js", "scale.js", "chart.js", "curves.js", "estimate.js", "images.js", "page.js")


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
    verdict: Verdict | None = None,
    provenance: Mapping[str, str] | None = None,
    truth: Array | None = None,
    image: tuple[int, int] | None = None,
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
    verdict : expected values and claims against what was measured, from ``experiments.verdict.judge``.
    provenance : where numbers come from, name to sentence.
    truth : the coefficients that generated the data of each method's first run.
    image : the shape of a row that is a picture: coefficients are then shown as pictures, one a class.
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
        image=image, metric=metric,
    )  # fmt: skip
    leading = sentences.leader(groups, metric, label)
    return render(
        path,
        {
            "title": escape(title),
            "subtitle": f'<p class="subtitle">{escape(subtitle)}</p>' if subtitle else "",
            "headline": escape(sentences.headline(verdict, groups)),
            "judged": escape(sentences.judged(verdict)),
            "leader": escape(leading),
            "troubles": sections.troubles(sentences.troubles(groups)),
            "progress": "Progress",
            "facts": sections.facts(groups),
            "estimate": sections.estimate(data["estimate"], truth is not None),
            "verdict": sections.verdict(verdict, labels),
            "ledger": tables.ledger_table(groups),
            "settings": tables.settings_table(groups) + sections.provenance(provenance or {}),
            "notes": tables.notes_list(groups)
            + sections.details("How each run ended, and its data", tables.runs_table(groups)),
            "versions": tables.versions_list([run for runs in groups.values() for run in runs]),
            "rerun": sections.rerun(commands),
        },
        data,
    )


def render(path: str | os.PathLike[str], parts: Mapping[str, str], data: Any) -> Path:
    """The template with its parts, style, scripts and data in place, written to one file."""
    style = palette.css() + _read("report.css")
    script = '"use strict";(() => {\n' + "".join(map(_read, SCRIPTS)) + "})();"
    policy = f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
    policy += "base-uri 'none'; form-action 'none'"
    own = {"style": style, "script": script, "policy": policy, "data": _embedded(data)}
    page = Template(_read("template.html")).substitute({**parts, **own, "version": escape(__version__)})
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, "utf-8", newline="\n")
    return path


def experiment_report(
    experiment: Experiment,
    groups: Mapping[str, Sequence[Run]],
    path: str | os.PathLike[str],
    *,
    verdict: Verdict,
    split: Split,
    command: str,
) -> Path:
    """The report of an experiment: ``split`` is the first seed's data, ``command`` makes the runs again."""
    _check(groups, None)
    settings = next(iter(groups.values()))[0].settings
    has_truth = any(metric in experiment.metrics for metric in AGAINST_TRUTH)
    return write_report(
        path,
        groups,
        title=experiment.title,
        subtitle=f"{experiment.about}. Data: {split.what}. {settings['rounds']} rounds, "
        f"{settings['cohort']} clients a round, minibatches of {settings['batch_size']} rows.",
        labels=experiment.metrics,
        log={name: name not in LINEAR for name in experiment.metrics},
        references=verdict.optimum,
        reference_label="exact optimum",
        metric=experiment.expected.get("metric") or next(iter(experiment.metrics), None),
        verdict=verdict,
        provenance=experiment.provenance,
        truth=split.train.truth if has_truth else None,
        image=experiment.image,
        commands=[command],
    )


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
