"""The page's sections that do not need a script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from unpooled.experiments.claims import Finding
from unpooled.experiments.verdict import Verdict
from unpooled.report import tables
from unpooled.report.numbers import duration, size, span, whole
from unpooled.runs.run import Run


def troubles(sentences: Sequence[str]) -> str:
    """What did not go to plan, as a list."""
    if not sentences:
        return ""
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return f'<ul class="troubles" aria-label="What did not go to plan">{items}</ul>'


def facts(groups: Mapping[str, Sequence[Run]]) -> str:
    """The page in six numbers."""
    runs = [run for method in groups.values() for run in method]
    up, down = (sum(getattr(run.ledger, way) for run in runs) for way in ("bytes_up", "bytes_down"))
    return tables.definitions(
        [
            ("methods", whole(len(groups))),
            ("runs", whole(len(runs))),
            ("rounds a run", span([run.ledger.rounds for run in runs])),
            ("sent up, all runs", size(up)),
            ("sent down, all runs", size(down)),
            ("time, all runs", duration(sum(run.seconds for run in runs))),
        ]
    )


def estimate(estimate: Mapping[str, Any] | None, has_truth: bool) -> str:
    """The frame of the estimates; scripts draw into it."""
    if estimate is None:
        return ""
    against = " against the truth" if has_truth else ""
    seed = "" if estimate["seed"] is None else f" These are the runs of seed {estimate['seed']}."
    left = estimate["left_out"]
    missing = f" Not shown, for another shape: {', '.join(left)}." if left else ""
    shape = " × ".join(str(n) for n in estimate["shape"])
    if estimate["kind"] == "images":
        heading, table = "What was learned, as pictures", tables.support_table(estimate)
        text = "The coefficients of each class in the place of their pixels: blue speaks for the class, "
        text += "orange against it, nothing is drawn where a coefficient is exactly zero."
    elif estimate["kind"] == "spectrum":
        heading, table = f"Singular values{against}", ""
        text = f"The singular values of each {shape} estimate, in decreasing order."
    else:
        heading, table = f"Coefficients{against}", tables.support_table(estimate)
        order = ", row by row" if len(estimate["shape"]) > 1 else ""
        text = f"The {shape} coefficients of each method{order}."
        if len(estimate["edges"]) - 1 < np.prod(estimate["shape"]):
            text += " Neighbours share a stroke, which reaches from the least of them to the greatest."
    text += f"{seed}{missing} Methods switched off above are left out here too."
    return (
        f'<section aria-labelledby="estimate-heading"><h2 id="estimate-heading">{heading}</h2>'
        f'<p class="lead">{escape(text)}</p>'
        f'<div id="estimate"></div>{table}<div id="estimate-values"></div></section>'
    )


def verdict(verdict: Verdict | None, labels: Mapping[str, str]) -> str:
    """Measured against expected, then the claims."""
    if verdict is None:
        return ""
    parts = []
    if verdict.comparisons:
        parts.append(
            '<section aria-labelledby="verdict-heading"><h2 id="verdict-heading">Measured and expected</h2>'
            '<p class="lead">In each cell the mean over seeds, below it the expected value and the '
            f"deviation.</p>{tables.verdict_table(verdict.comparisons, labels)}</section>"
        )
    if verdict.findings:
        items = "".join(map(_finding, verdict.findings))
        parts.append(
            '<section aria-labelledby="claims-heading"><h2 id="claims-heading">What the paper says</h2>'
            '<p class="lead">Each claim in numbers, for the mean over seeds.</p>'
            f'<ul class="claims">{items}</ul></section>'
        )
    return "".join(parts)


def _finding(finding: Finding) -> str:
    words = {True: "held", False: "did not hold", None: "not judged"}[finding.holds]
    why = finding.claim.why_not if finding.holds is False else ""
    return (
        f'<li class="{"" if finding.holds is not False else "failed"}">'
        f'<span class="mark" aria-hidden="true">{finding.mark}</span> <strong>{words}</strong> · '
        f'{escape(finding.claim.text)} <span class="where">({escape(finding.claim.source)})</span>'
        f'<span class="evidence">{escape(finding.evidence)}{". " + escape(why) if why else ""}</span></li>'
    )


def provenance(sentences: Mapping[str, str]) -> str:
    """Where the numbers come from."""
    if not sentences:
        return ""
    return (
        '<section aria-labelledby="provenance-heading">'
        '<h2 id="provenance-heading">Where the numbers come from</h2>'
        f"{tables.definitions(list(sentences.items()))}</section>"
    )


def rerun(commands: Sequence[str]) -> str:
    """The commands that make these runs again."""
    if not commands:
        return "<p>No command was given with these runs; their settings are above.</p>"
    return "".join(f"<pre><code>{escape(command)}</code></pre>" for command in commands)


def details(summary: str, content: str) -> str:
    """Content that opens when asked for."""
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"
