"""``unpooled site …``: what a site that takes part in a study types."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Shown

from unpooled.study.commands import complaints, end_as_interrupted

if TYPE_CHECKING:
    from unpooled.study.config import Study
    from unpooled.study.description import Unfit
    from unpooled.study.rehearsal import Rehearsal
    from unpooled.study.table import Table

app = typer.Typer(help="Take part in a study with this site's table.", no_args_is_help=True)
out = Console(highlight=False)

StudyFile = Annotated[Path, typer.Option("--study", help="The study's file.")]
DataFile = Annotated[Path, typer.Option("--data", help="This site's rows: CSV or Parquet.")]
SiteName = Annotated[
    str | None,
    typer.Option("--site", help="This site's id.", show_default="that of the key beside the study"),
]
Refuse = Annotated[str, typer.Option(help="Statistics not to send, such as gram,hessian.")]


@app.command()
def check(study: StudyFile, data: DataFile, site: SiteName = None, refuse: Refuse = "") -> None:
    """Say whether the table fits the study and what would leave the site; nothing is sent."""
    from unpooled.study.rehearsal import rehearse

    with complaints():
        asked, name, table, kinds = _opened(study, data, site, refuse)
        found = _unfits(asked, table, name)
        _about(asked, name, table)
        if found:
            _refused(found)
            raise typer.Exit(2)
        out.print("[green]✓[/] The table fits the study.")
        _leaving(rehearse(asked, name, table, kinds))


@app.command()
def join(
    study: StudyFile,
    data: DataFile,
    key: Annotated[
        Path | None, typer.Option(help="This site's key.", show_default="the one beside the study")
    ] = None,
    site: SiteName = None,
    audit: Annotated[Path | None, typer.Option(help="Log every statistic that leaves to this file.")] = None,
    audit_values: Annotated[bool, typer.Option("--audit-values", help="The numbers themselves too.")] = False,
    refuse: Refuse = "",
    insecure: Annotated[bool, typer.Option("--insecure", help="Without TLS; on this machine only.")] = False,
    logs: Annotated[
        Path | None, typer.Option(help="Folder of the logs.", show_default="logs/<site> beside the study")
    ] = None,
) -> None:
    """Take part in a study: answer the coordinator's questions until it is over."""
    end_as_interrupted()
    with complaints():
        from unpooled.study.audit import Audit
        from unpooled.study.desk import StudyDesk
        from unpooled.study.joining import join as take_part
        from unpooled.study.running import refuse_in_clear

        own = None if insecure else key or _key_beside(study)
        asked, name, table, kinds = _opened(study, data, site or (own.stem if own else None), refuse)
        ca = None
        if own is None:
            refuse_in_clear(asked)
        else:
            from unpooled.study.keys import check_site

            ca = own.with_name("ca.crt")
            check_site(own, ca)
        _about(asked, name, table)
        found = _unfits(asked, table, name)
        if found:
            _refused(found)
            raise typer.Exit(2)
        log = None if audit is None else Audit(audit, asked.name, name, values=audit_values)
        desk = StudyDesk(asked, name, table, audit=log, refuses=kinds, say=_said)
        out.print(f"[green]✓[/] The table fits the study. Calling {asked.address} …")
        try:
            ended = take_part(asked, desk, own, ca, logs or study.parent / "logs" / name, _told)
        except KeyboardInterrupt:
            out.print("Stopped. The study may go on without this site; join again to come back.")
            raise typer.Exit(130) from None
    out.print(f"[green]✓[/] The study is over: {escape(ended)}", soft_wrap=True)
    if audit is not None:
        out.print(f"  What left this site is in {audit} ({desk.answers} answers).", soft_wrap=True)


def _opened(
    path: Path, data: Path, site: str | None, refuse: str
) -> tuple[Study, str, Table, tuple[str, ...]]:
    """The study, this site's id, its table, and what it does not send."""
    from unpooled.kinds import WORDS
    from unpooled.study.config import StudyError, load
    from unpooled.study.table import read
    from unpooled.validation import closest, listing

    study = load(path)
    if site is None:
        beside = sorted(each.stem for each in path.parent.glob("*.key"))
        site = beside[0] if len(beside) == 1 else None
    if site is None:
        raise StudyError(f"which site is this? --site says so, one of {listing(study.sites)}")
    if site not in study.sites:
        raise StudyError(
            f"{site!r} is not a site of the study{closest(site, study.sites)}: {listing(study.sites)}"
        )
    kinds = tuple(kind.strip() for kind in refuse.split(",") if kind.strip())
    for kind in kinds:
        if kind not in WORDS:
            raise StudyError(
                f"--refuse knows no statistic {kind!r}{closest(kind, WORDS)}; known: {listing(WORDS)}"
            )
    return study, site, read(data), kinds


def _key_beside(path: Path) -> Path:
    from unpooled.study.config import StudyError

    beside = sorted(path.parent.glob("*.key"))
    if len(beside) != 1:
        found = ", ".join(each.name for each in beside) or "none"
        raise StudyError(f"--key is needed: there should be one key beside {path}, and there is {found}")
    return beside[0]


def _unfits(study: Study, table: Table, site: str) -> list[Unfit]:
    from unpooled.study.description import unfits

    return unfits(study, table, site)


def _about(study: Study, site: str, table: Table) -> None:
    name, target = escape(study.name), escape(study.target)
    out.print(f"Study [bold]{name}[/]: {study.model} of {target}, {len(study.sites)} sites")
    columns = len(table.columns)
    out.print(f"  {site}: {escape(str(table.path))}, {table.n_rows} rows × {columns} columns", soft_wrap=True)


def _refused(found: list[Unfit]) -> None:
    respects = f", in {len(found)} respects" if len(found) > 1 else ""
    out.print(f"[red]✗[/] The table does not fit the study{respects}:")
    for each in found:
        out.print(f"  • {escape(each.here)}", soft_wrap=True)


def _leaving(rehearsal: Rehearsal) -> None:
    from unpooled.ledger import megabytes

    table = Shown("step", "what would leave", "size", "times", box=SIMPLE, pad_edge=False)
    table.columns[2].justify = table.columns[3].justify = "right"
    for step in rehearsal.steps:
        table.add_row(f"[bold]{step.name}[/]", escape(step.what), megabytes(step.size), str(step.times))
    out.print(table)
    if rehearsal.ended:
        out.print(
            f"The rehearsal went no further, with this site alone: {escape(rehearsal.ended)}", soft_wrap=True
        )
    out.print(
        "Rehearsed on this machine with this site alone; nothing was sent. With other sites there may be\n"
        "more levels and another number of rounds. Rows never leave.",
        soft_wrap=True,
    )


def _said(request: Any, reply: Any) -> None:
    """A line for each answer as it leaves."""
    from unpooled.ledger import megabytes
    from unpooled.study.patience import REFUSED
    from unpooled.study.rehearsal import NAMES, words_of

    now = f"{datetime.datetime.now():%H:%M:%S}"
    if request.kind == "tell":
        return
    if REFUSED in reply.spec:
        out.print(f"  [dim]{now}[/] [yellow]refused[/]: {escape(str(reply.spec[REFUSED]))}", soft_wrap=True)
        return
    name, (what, size) = NAMES.get(request.kind, request.kind), words_of(request, reply)
    out.print(f"  [dim]{now}[/] [bold]{name}[/]: {escape(what)} [dim]({megabytes(size)})[/]", soft_wrap=True)


def _told(text: str) -> None:
    out.print(f"  {escape(text)}", soft_wrap=True)
