"""``unpooled study …``: what the coordinator of a study types."""

from __future__ import annotations

import os
import signal
import threading
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from unpooled._wording import counted, escaped

app = typer.Typer(help="Coordinate a study across sites.", no_args_is_help=True)
out = Console(highlight=False)
DAYS = 365  # that certificates are valid

StudyFile = Annotated[Path, typer.Argument(help="The study's file.", metavar="STUDY")]
KeysFolder = Annotated[Path, typer.Option("--keys", help="Folder of the keys.")]


@app.command()
def init(
    path: Annotated[Path, typer.Argument(help="The file to write.", metavar="STUDY")] = Path("study.toml"),
    name: Annotated[str | None, typer.Option(help="What the study is called.")] = None,
    sites: Annotated[str | None, typer.Option(help="Ids of the sites, separated by commas.")] = None,
    address: Annotated[str | None, typer.Option(help="Where sites reach the coordinator: host:port.")] = None,
    target: Annotated[str | None, typer.Option(help="The column to be explained.")] = None,
    features: Annotated[str | None, typer.Option(help="Columns, separated by commas; or all.")] = None,
    data: Annotated[
        Path | None, typer.Option("--data", help="A site's table, to take the features from.")
    ] = None,
    categorical: Annotated[str | None, typer.Option(help="Those with levels to agree on.")] = None,
    model: Annotated[str | None, typer.Option(help="lasso, elastic net, logistic, …")] = None,
    lam: Annotated[str | None, typer.Option("--lambda", help="A number, path or cv.")] = None,
    missing: Annotated[str | None, typer.Option(help="Missing numbers: refuse or mean.")] = None,
    minimum_rows: Annotated[int | None, typer.Option(help="Rows that a site must have.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Take defaults; write over the file.")] = False,
) -> None:
    """Ask a few questions and write study.toml; every answer can be given as an option."""
    from unpooled.study import writing
    from unpooled.study.questions import answered

    if path.is_dir():
        raise typer.BadParameter(f"{path} is a folder", param_hint="STUDY")
    if path.exists() and not yes:
        typer.confirm(f"{path} is there already. Write over it?", abort=True)
    options = {"name": name, "sites": sites, "address": address, "target": target, "features": features}
    options |= {"categorical": categorical, "missing": missing, "kind": model, "lambda": lam}

    def ask(question: str, default: str | None) -> str:
        return str(typer.prompt(question, default=default, show_default=default != ""))

    with complaints():
        given = {**options, "minimum_rows": minimum_rows}
        found = None if data is None else partial(_columns, data)
        study = answered(given, None if yes else ask, _complain, found)
        writing.write(study, path)
    shown = escaped(str(path))
    out.print(f"[green]✓[/] {shown} is written. Read it through: it has more settings than these.")
    out.print(f"  Next: [bold]unpooled study keys {shown}[/]", soft_wrap=True)


@app.command()
def keys(
    path: StudyFile = Path("study.toml"),
    folder: Annotated[Path, typer.Option("--out", help="Folder of the keys.")] = Path("keys"),
    host: Annotated[
        list[str] | None, typer.Option(help="More names or addresses of the coordinator.")
    ] = None,
    days: Annotated[
        int | None, typer.Option(min=1, help="How long certificates are valid.", show_default=str(DAYS))
    ] = None,
    site: Annotated[str | None, typer.Option(help="Only this site's key, anew.")] = None,
    ca_passphrase: Annotated[
        bool, typer.Option("--ca-passphrase", help="Ask for a passphrase that locks ca.key.")
    ] = False,
) -> None:
    """Make the authority, the coordinator's certificate and a key pair for each site."""
    from unpooled.study.config import StudyError, load

    with complaints():
        study = load(path)
        from unpooled.study.certificates import hosts_of, read_certificate
        from unpooled.study.keys import make, renew

        if site is not None:
            if host or ca_passphrase or days is not None:
                raise StudyError(
                    "--site makes one site's key; --host, --days and --ca-passphrase are for all keys"
                )
            made = renew(study, path, folder, site)
        else:
            secret: bytes | None = None
            if ca_passphrase:  # asked for, because others can read a command line
                given = typer.prompt("Passphrase of ca.key", hide_input=True, confirmation_prompt=True)
                secret = str(given).encode()
            made = make(study, path, folder, days or DAYS, _hosts(host or []), secret)
        certificate = read_certificate(made.certificate)
    until = f"{certificate.not_valid_after_utc:%d %B %Y}"
    if site is not None:
        then = "the old one is not accepted from the next start on"
        out.print(f"[green]✓[/] A new key of [bold]{escaped(site)}[/]; {then}", soft_wrap=True)
        _goes_to(made.site(site), site)
        out.print("  A study that is running takes it once it is stopped and resumed.")
        return
    out.print(f"[green]✓[/] Keys of the study [bold]{escaped(study.name)}[/], valid until {until}")
    out.print(
        f"  {escaped(str(folder / 'coordinator'))}  stays here; the coordinator is known as", soft_wrap=True
    )
    out.print(f"    {', '.join(hosts_of(certificate))}", soft_wrap=True)
    for each in study.sites:
        _goes_to(made.site(each), each)
    out.print(f"  In it are the site's own key ({study.sites[0]}.key and so on), ca.crt and study.toml.")
    next_one = escaped(f"unpooled study run {path} --keys {folder}")
    out.print(f"  Next: [bold]{next_one}[/]", soft_wrap=True)
    out.print("  and at each site: [bold]unpooled site join --study study.toml --data …[/]", soft_wrap=True)


def _hosts(given: list[str]) -> tuple[str, ...]:
    from unpooled.study.checks import Wrong
    from unpooled.study.checks import host as checked
    from unpooled.study.config import StudyError

    try:
        return tuple(checked(each) for each in given)
    except Wrong as wrong:
        raise StudyError(f"--host {wrong}") from None


def _goes_to(folder: Path, site: str) -> None:
    shown = escaped(str(folder))
    out.print(f"  {shown}  goes to [bold]{escaped(site)}[/], over a confidential channel", soft_wrap=True)


@app.command()
def run(
    path: StudyFile = Path("study.toml"),
    keys: KeysFolder = Path("keys"),
    results: Annotated[
        Path | None, typer.Option(help="Folder of the results.", show_default="that of the study's file")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a study that was stopped.")] = False,
    insecure: Annotated[bool, typer.Option("--insecure", help="Without TLS; on this machine only.")] = False,
    bind: Annotated[
        str | None,
        typer.Option(help="Interface to listen on.", show_default="all; loopback where that is the address"),
    ] = None,
) -> None:
    """Wait for the sites, agree, fit, and write the results."""
    end_as_interrupted()
    with complaints():
        from unpooled.study.config import StoppedError, load
        from unpooled.study.running import run as coordinate

        study = load(path)
        folder = results or path.parent / study.results
        out.print(
            f"Study [bold]{escaped(study.name)}[/] on {escaped(study.address)}; "
            f"at least {counted(study.minimum_sites, 'site')} needed"
        )
        chosen = [] if results is None else [f"--results {results}"]
        chosen += ["--insecure"] if insecure else [f"--keys {keys}"]
        chosen += [] if bind is None else [f"--bind {bind}"]
        again = escaped(" ".join([f"unpooled study run {path}", *chosen, "--resume"]))
        try:
            ended = coordinate(study, path, folder, None if insecure else keys, out, resume=resume, bind=bind)
        except StoppedError as error:
            _complain(str(error))
            out.print("  What was answered is kept. To go on:")
            out.print(f"  [bold]{again}[/]", soft_wrap=True)
            raise typer.Exit(3) from None
        except KeyboardInterrupt:
            out.print("Interrupted. What was answered is kept. To go on:")
            out.print(f"  [bold]{again}[/]", soft_wrap=True)
            raise typer.Exit(130) from None
    out.print(ended.summary, markup=False, soft_wrap=True)
    if ended.folder is None:
        out.print(ended.csv, markup=False, soft_wrap=True)
        out.print("[red]✗[/] The results could not be written; above is all of coefficients.csv.")
        out.print(f"  The answers are kept. Make room, then: [bold]{again}[/]", soft_wrap=True)
        raise typer.Exit(3)
    names = "coefficients.csv, result.json, summary.txt"
    names += ", lambdas.csv" if isinstance(study.lam, str) else ""
    out.print(f"[green]✓[/] {escaped(str(ended.folder))}: {names}", soft_wrap=True)


def end_as_interrupted() -> None:
    """Let SIGTERM, with which a service or a container is stopped, end a command as Ctrl-C does."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)


class complaints:  # noqa: N801  # reads as a statement: with complaints(): …
    """Print what is wrong without a stack trace, and end with status 2."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        from unpooled.study.config import StudyError

        if isinstance(error, ModuleNotFoundError) and not str(error.name).startswith("unpooled"):
            said = f"{error.name} is not installed: pip install 'unpooled[flower]'"
        elif isinstance(error, OSError) and (error.filename or isinstance(error, FileNotFoundError)):
            said = _of_file(error)
        elif isinstance(error, StudyError):
            said = str(error)
        else:
            return
        _complain(said)
        raise typer.Exit(2) from None


def _complain(said: str) -> None:
    out.print(f"[red]✗[/] {escaped(said, lines=True)}", soft_wrap=True)


def _of_file(error: OSError) -> str:
    """What is wrong with a file or a folder."""
    if not error.filename:
        return str(error)
    folder = Path(os.fsdecode(error.filename)).parent
    if isinstance(error, FileNotFoundError) and not folder.exists():
        return f"{error.filename}: there is no folder {folder}; make it first"
    return f"{error.filename}: {error.strerror}"


def _columns(path: Path, target: str) -> list[str]:
    """The columns of a table but the target and what looks like an identifier."""
    from unpooled.study.columns import looks_like_id
    from unpooled.study.config import StudyError
    from unpooled.study.table import read

    try:
        table, kept = read(path), []
    except StudyError as error:
        said, found, option = str(error).partition("data.csv = ")
        if not found:
            raise
        option = option.partition(" in this site's")[0]  # whose study.toml is yet to be written
        raise StudyError(
            f"{said}study init reads tables with commas, in UTF-8: give --features instead of --data; "
            f"data.csv = {option} in the file that is written then lets sites use such a table"
        ) from None
    for name in table.columns:
        why = looks_like_id(name, table)
        if why and name != target:
            said = f"{name!r} is not among the features: it looks like an identifier ({why})"
            out.print(f"  {escaped(said, lines=True)}", soft_wrap=True)
        elif name != target:
            kept.append(name)
    return kept
