"""What a site's terminal shows: the study, the columns in use, what is left out, what leaves."""

from __future__ import annotations

import datetime

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table as Shown

from unpooled._ledger import megabytes
from unpooled._validation import listing
from unpooled._wording import counted, escaped
from unpooled.engines.remote.messages import Reply, Request
from unpooled.study.columns import id_like, used
from unpooled.study.config import Study
from unpooled.study.description import Unfit, rarities
from unpooled.study.effective import half_of
from unpooled.study.patience import REFUSED
from unpooled.study.rare import deals_rows, why_left_out, why_merged
from unpooled.study.rehearsal import NAMES, Rehearsal, words_of
from unpooled.study.table import Table

out = Console(highlight=False)


def about(study: Study, site: str, table: Table) -> None:
    """The study and the table."""
    name, target = escaped(study.name), escaped(study.target)
    out.print(f"Study [bold]{name}[/]: {study.model} of {target}, {len(study.sites)} sites")
    columns = len(table.columns)
    out.print(
        f"  {site}: {escaped(str(table.path))}, {table.n_rows} rows × {columns} columns", soft_wrap=True
    )


def columns(study: Study, table: Table) -> None:
    """The columns in use, and what a site lets itself be asked at most."""
    features = used(study, table)
    everything = ', for data.features = "all"' if study.features == "all" else ""
    out.print(f"  target {escaped(study.target)}; {counted(len(features), 'feature')}{everything}:")
    out.print(f"    {escaped(', '.join(features))}", soft_wrap=True)
    unused = [name for name in table.columns if name not in features and name != study.target]
    if unused:
        out.print(f"  not used: {escaped(listing(unused))}", soft_wrap=True)
    for name, why in id_like(study, table).items():
        said = f"column {name!r} looks like an identifier ({why}): should it be in the study?"
        out.print(f"  [yellow]![/] {escaped(said)}", soft_wrap=True)
    half = f" ({half_of(study.minimum_rows)} within a fold)" if deals_rows(study) else ""
    out.print(
        f"  at most {counted(study.max_requests, 'request')} of {counted(study.max_questions, 'question')}, "
        f"{study.max_numbers:.3g} numbers in all; sums of {counted(study.minimum_rows, 'row')} or more{half}",
        soft_wrap=True,
    )


def rare(study: Study, site: str, table: Table) -> None:
    """What takes no part because few rows have it."""
    found = rarities(study, site, table)
    said = [why_left_out(study, site, name, table.numbers(name)) for name in found.columns]
    merged = [name for name, into in found.levels.items() if into]
    for each in said + [why_merged(study, site, name, table.labels(name)) for name in merged]:
        out.print(f"  [yellow]![/] {escaped(each)}", soft_wrap=True)


def refused(found: list[Unfit]) -> None:
    """Why a table does not fit."""
    respects = f", in {len(found)} respects" if len(found) > 1 else ""
    out.print(f"[red]✗[/] The table does not fit the study{respects}:")
    for each in found:
        out.print(f"  • {escaped(each.here)}", soft_wrap=True)


def leaving(rehearsal: Rehearsal) -> None:
    """What a rehearsal found to leave."""
    table = Shown("step", "what would leave", "size", "times", box=SIMPLE, pad_edge=False)
    table.columns[2].justify = table.columns[3].justify = "right"
    for step in rehearsal.steps:
        table.add_row(f"[bold]{step.name}[/]", escaped(step.what), megabytes(step.size), str(step.times))
    out.print(table)
    if rehearsal.ended:
        out.print(
            f"The rehearsal went no further, with this site alone: {escaped(rehearsal.ended)}", soft_wrap=True
        )
    out.print(
        "Rehearsed on this machine with this site alone; nothing was sent. With other sites there may be\n"
        "more levels and another number of rounds. Rows never leave.",
        soft_wrap=True,
    )


def said(request: Request, reply: Reply) -> None:
    """A line for each answer as it leaves."""
    now = f"{datetime.datetime.now():%H:%M:%S}"
    if request.kind == "tell":
        return
    if REFUSED in reply.spec:
        out.print(f"  [dim]{now}[/] [yellow]refused[/]: {escaped(str(reply.spec[REFUSED]))}", soft_wrap=True)
        return
    name, (what, size) = NAMES.get(request.kind, request.kind), words_of(request, reply)
    out.print(
        f"  [dim]{now}[/] [bold]{escaped(name)}[/]: {escaped(what)} [dim]({megabytes(size)})[/]",
        soft_wrap=True,
    )
