"""``unpooled site …``: what a site that takes part in a study types."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from unpooled._wording import escaped
from unpooled.study.commands import complaints, end_as_interrupted

if TYPE_CHECKING:
    from unpooled.study.approval import Approval
    from unpooled.study.config import Study
    from unpooled.study.description import Unfit
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
    from unpooled.study import showing
    from unpooled.study.rehearsal import rehearse

    with complaints():
        asked, name, table, kinds = _opened(study, data, site, refuse)
        found = _unfits(asked, table, name)
        showing.about(asked, name, table)
        showing.columns(asked, table)
        if found:
            showing.refused(found)
            raise typer.Exit(2)
        out.print("[green]✓[/] The table fits the study.")
        showing.rare(asked, name, table)
        showing.leaving(rehearse(asked, name, table, kinds))


@app.command()
def join(
    study: StudyFile,
    data: DataFile,
    key: Annotated[
        Path | None, typer.Option(help="This site's key.", show_default="the one beside the study")
    ] = None,
    site: SiteName = None,
    audit: Annotated[
        Path | None,
        typer.Option(
            help="Log every question and answer to this file.", show_default="audit.jsonl of the logs"
        ),
    ] = None,
    audit_values: Annotated[bool, typer.Option("--audit-values", help="The numbers themselves too.")] = False,
    no_audit: Annotated[bool, typer.Option("--no-audit", help="Log nothing.")] = False,
    approve: Annotated[
        bool, typer.Option("--approve", help="Ask here before each kind of answer leaves.")
    ] = False,
    approve_each: Annotated[
        bool, typer.Option("--approve-each", help="Ask here before each answer leaves.")
    ] = False,
    refuse: Refuse = "",
    insecure: Annotated[bool, typer.Option("--insecure", help="Without TLS; on this machine only.")] = False,
    logs: Annotated[
        Path | None, typer.Option(help="Folder of the logs.", show_default="logs/<site> beside the study")
    ] = None,
) -> None:
    """Take part in a study: answer the coordinator's questions until it is over."""
    end_as_interrupted()
    with complaints():
        from unpooled.study import showing
        from unpooled.study.audit import Audit
        from unpooled.study.config import StudyError
        from unpooled.study.desk import StudyDesk
        from unpooled.study.joining import join as take_part
        from unpooled.study.running import refuse_in_clear

        if no_audit and (audit is not None or audit_values):
            raise StudyError(
                "--no-audit logs nothing, and --audit and --audit-values say what to log: leave out one"
            )
        own = None if insecure else key or _key_beside(study)
        asked, name, table, kinds = _opened(study, data, site or (own.stem if own else None), refuse)
        ca = None
        if own is None:
            refuse_in_clear(asked)
        else:
            from unpooled.study.keys import check_site

            ca = own.with_name("ca.crt")
            check_site(own, ca)
        showing.about(asked, name, table)
        showing.columns(asked, table)
        found = _unfits(asked, table, name)
        if found:
            showing.refused(found)
            raise typer.Exit(2)
        showing.rare(asked, name, table)
        folder = logs or study.parent / "logs" / name
        log = None if no_audit else Audit(_audit_file(audit, folder), asked.name, name, values=audit_values)
        asks = _approval(each=approve_each) if approve or approve_each else None
        desk = StudyDesk(asked, name, table, audit=log, refuses=kinds)
        desk.say, desk.note, desk.approve = showing.said, _told, asks
        out.print(f"[green]✓[/] The table fits the study. Calling {asked.address} …")
        try:
            ended = take_part(asked, desk, own, ca, folder, _told)
        except KeyboardInterrupt:
            out.print("Stopped. The study may go on without this site; join again to come back.")
            raise typer.Exit(130) from None
        out.print(f"[green]✓[/] The study is over: {escaped(ended)}", soft_wrap=True)
        _results(desk.told[-1], study.parent / asked.results / name)
    if log is not None:
        out.print(
            f"  What left this site is in {escaped(str(log.path))} ({desk.answers} answers).", soft_wrap=True
        )


def _results(told: Mapping[str, Any], folder: Path) -> None:
    """Show and keep the results, where the study gives them to the sites."""
    from unpooled.study.sharing import keep, summary_of

    out.print(summary_of(told), markup=False, soft_wrap=True, end="")
    written = keep(told, folder)
    if written:
        names = ", ".join(path.name for path in written)
        out.print(f"[green]✓[/] {escaped(str(folder))}: {names}", soft_wrap=True)


def _opened(
    path: Path, data: Path, site: str | None, refuse: str
) -> tuple[Study, str, Table, tuple[str, ...]]:
    """The study, this site's id, its table, and what it does not send."""
    from unpooled._ledger import WORDS
    from unpooled._validation import closest, listing
    from unpooled.study.config import StudyError, load
    from unpooled.study.table import read

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
    return study, site, read(data, study.file), kinds


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


def _audit_file(asked: Path | None, folder: Path) -> Path:
    if asked is None:
        folder.mkdir(parents=True, exist_ok=True)
        return folder / "audit.jsonl"
    return asked


def _approval(*, each: bool) -> Approval:
    import sys

    from unpooled.study.approval import Approval
    from unpooled.study.config import StudyError

    if not sys.stdin.isatty():
        given = "--approve-each" if each else "--approve"
        raise StudyError(
            f"{given} asks at a terminal, and this command has none: join from a terminal, or without it"
        )

    def ask(question: str) -> str:
        try:
            return str(typer.prompt(question))
        except typer.Abort:  # Ctrl-C or SIGTERM, which stop the site; only "no" means no
            raise KeyboardInterrupt from None

    return Approval(ask, lambda text: out.print(escaped(text), soft_wrap=True), each=each)


def _told(text: str) -> None:
    out.print(f"  {escaped(text)}", soft_wrap=True)
