"""The report's tables as HTML. Every text that comes from outside goes through ``escape``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from unpooled.experiments.verdict import Comparison
from unpooled.report.grouping import PER_SEED, flat, text
from unpooled.report.numbers import duration, percent, significant, size, span, whole
from unpooled.runs.run import Run, Status

SHORT = 16  # characters of a name that stays on one line
LONG = 28  # characters of a value that gets a line of its own


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], numeric: int = 1) -> str:
    """A table that scrolls in its own box; columns from ``numeric`` on are aligned as numbers."""
    marks = ["" if i < numeric else ' class="n"' for i in range(len(head))]
    heads = "".join(f'<th scope="col"{mark}>{_cell(h)}</th>' for h, mark in zip(head, marks, strict=True))
    body = []
    for row in rows:
        short = ' class="short"' if len(row[0]) <= SHORT else ""
        first = f'<th scope="row"{short}>{_cell(row[0])}</th>'
        rest = (f"<td{mark}>{_cell(cell)}</td>" for cell, mark in zip(row[1:], marks[1:], strict=True))
        body.append(f"<tr>{first}{''.join(rest)}</tr>")
    return (
        f'<div><p class="caption" aria-hidden="true">{escape(caption)}</p>'
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(caption)}">'
        f'<table aria-label="{escape(caption)}"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div></div>"
    )


def _cell(content: str) -> str:
    return content if isinstance(content, Html) else escape(content)


def verdict_table(comparisons: Sequence[Comparison], labels: Mapping[str, str]) -> str:
    """Methods by rounds; in each cell the measured value, then expected, deviation and a mark in words."""
    columns = list(dict.fromkeys((c.quantity, c.round) for c in comparisons))
    columns.sort(key=lambda column: (column[0] == "gap", column[1]))
    rows = []
    for method in dict.fromkeys(c.method for c in comparisons):
        cells = {(c.quantity, c.round): _comparison(c) for c in comparisons if c.method == method}
        rows.append([method, *(cells.get(column, Html("")) for column in columns)])
    heads = [f"φ − φ*, round {whole(r)}" if q == "gap" else f"Round {whole(r)}" for q, r in columns]
    quantity = columns[0][0]
    return table(f"{labels.get(quantity, quantity)}: measured, expected, deviation", ["Method", *heads], rows)


def _comparison(c: Comparison) -> Html:
    mark = '<span class="mark" aria-hidden="true">✓</span><span class="unseen">within tolerance</span>'
    if not c.holds:
        mark = f'<strong class="outside"><span aria-hidden="true">✗</span> outside {c.tolerance}</strong>'
    return Html(
        f'<span class="measured">{significant(c.measured, 3)}</span>'
        f'<span class="expected">{significant(c.expected, 3)}</span>'
        f'<span class="deviation">{percent(c.deviation)} {mark}</span>'
    )


def settings_table(groups: Mapping[str, Sequence[Run]]) -> str:
    """What all methods share as a list, then what each method has of its own."""
    own = {name: flat(runs[0].settings) for name, runs in groups.items()}
    names = list(dict.fromkeys(key for settings in own.values() for key in settings if key not in PER_SEED))
    first = next(iter(own.values()))
    shared = [n for n in names if all(n in s and s[n] == first.get(n) for s in own.values())]
    parts = [definitions([(n, first[n]) for n in shared])]
    if len(groups) > 1:
        rows = []
        for name, settings in own.items():
            algorithm = text(groups[name][0].settings.get("algorithm", {}).get("name"))
            rest = [("algorithm", algorithm)]
            rest += [(n, settings[n]) for n in names if n in settings and n not in shared]
            pairs = "".join(
                f'<span class="pair"><span>{escape(n)}</span> {escape(v)}</span> ' for n, v in rest
            )
            rows.append([name, Html(pairs)])
        parts.append(table("Settings of each method", ["Method", "Its own"], rows, numeric=2))
    else:
        algorithm = text(next(iter(groups.values()))[0].settings.get("algorithm", {}).get("name"))
        parts.insert(0, definitions([("algorithm", algorithm)]))
    return "".join(parts)


def definitions(pairs: Sequence[tuple[str, str]]) -> str:
    """A list of names and values."""
    if not pairs:
        return ""
    items = []
    for name, value in sorted(pairs, key=lambda pair: len(pair[1]) > LONG):
        wide = ' class="wide"' if len(value) > LONG else ""
        items.append(f"<div{wide}><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>")
    return f'<dl class="pairs">{"".join(items)}</dl>'


def ledger_table(groups: Mapping[str, Sequence[Run]]) -> str:
    """What a run of each method cost; ranges where its runs differ."""
    rows = []
    for name, runs in groups.items():
        ledgers = [run.ledger for run in runs]
        rounds = sum(ledger.rounds for ledger in ledgers)
        up, down = (sum(getattr(ledger, way) for ledger in ledgers) for way in ("bytes_up", "bytes_down"))
        seconds = float(np.median([run.seconds for run in runs]))
        rows.append(
            [
                name,
                span([ledger.rounds for ledger in ledgers]),
                span([ledger.setup_rounds for ledger in ledgers]),
                span([ledger.client_updates for ledger in ledgers]),
                size(up / len(runs)),
                size(down / len(runs)),
                size((up + down) / rounds) if rounds else "none",
                duration(seconds),
            ]
        )
    head = ["Method", "Rounds", "Setup rounds", "Client updates", "Sent up", "Sent down",
            "Both ways a round", "Time"]  # fmt: skip
    return table("Cost of one run, over all clients; the median time over seeds", head, rows)


def runs_table(groups: Mapping[str, Sequence[Run]]) -> str:
    """How each run ended."""
    rows = []
    for name, runs in groups.items():
        for run in runs:
            data = str(run.settings.get("data", ""))
            status = str(run.status)
            if run.status != Status.COMPLETED:
                status = Html(f'<strong class="outside">{escape(status)}</strong>')
            ended = run.message if run.certificate is None else f"{run.message} {run.certificate}."
            rows.append([name, str(run.seed), status, ended, Html(f"<code>{escape(data)}</code>")])
    return table("Every run", ["Method", "Seed", "Status", "How it ended", "Data"], rows, numeric=5)


def notes_list(groups: Mapping[str, Sequence[Run]]) -> str:
    """What was chosen for the runs; a note that all seeds of a method share stands once."""
    items = []
    for name, runs in groups.items():
        for note in dict.fromkeys(note for run in runs for note in run.notes):
            seeds = [str(run.seed) for run in runs if note in run.notes]
            which = "" if len(seeds) == len(runs) else f" (seed {', '.join(seeds)})"
            items.append(f"<li><strong>{escape(name)}</strong>{which}: {escape(note)}</li>")
    return f"<ul>{''.join(items)}</ul>" if items else "<p>The runs carry no notes.</p>"


def versions_list(runs: Sequence[Run]) -> str:
    """Library versions; all that occur where runs differ."""
    seen: dict[str, dict[str, None]] = {}
    for run in runs:
        for library, version in run.versions.items():
            seen.setdefault(library, {})[version] = None
    return definitions([(library, ", ".join(found)) for library, found in seen.items()])


def support_table(estimate: Mapping[str, Any]) -> str:
    """The support of each estimate, against the truth where it is known."""
    truth = estimate.get("truth")
    rows = []
    for method in estimate["methods"]:
        row = [method["name"], whole(method["nonzeros"])]
        if truth is not None:
            row += [f"{whole(method['found'])} of {whole(method['true'])}", whole(method["missed"]),
                    whole(method["spurious"])]  # fmt: skip
        rows.append(row)
    head = ["Method", "Exactly nonzero"]
    if truth is None:
        return table("The support of the estimates", head, rows)
    caption = "The support of the estimates; a coefficient counts as found where |w| > 0.01"
    return table(caption, [*head, "Found", "Missed", "Spurious"], rows)
