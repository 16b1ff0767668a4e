"""``unpooled study …``: what the coordinator of a study types."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

app = typer.Typer(help="Coordinate a study across sites.", no_args_is_help=True)
out = Console(highlight=False)

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
    from unpooled.study.config import StudyError, parse
    from unpooled.study.settings import MODELS

    if path.is_dir():
        raise typer.BadParameter(f"{path} is a folder", param_hint="STUDY")
    if path.exists() and not yes:
        typer.confirm(f"{path} is there already. Write over it?", abort=True)

    def asked(given: Any, question: str, default: str | None) -> str:
        if given is not None:
            return str(given)
        if yes:
            if default is None:
                raise StudyError(
                    f"{question.split(' (')[0]}: --yes has no default for it, give it as an option"
                )
            return default
        return str(typer.prompt(question, default=default, show_default=default != ""))

    with complaints():
        answers: dict[str, Any] = {"name": asked(name, "Name of the study", "study")}
        answers["sites"] = _list(asked(sites, "Ids of the sites (separated by commas)", None))
        answers["address"] = asked(address, "Address at which sites reach you (host:port)", "127.0.0.1:9092")
        told: dict[str, Any] = {"target": asked(target, "Target (the column to be explained)", None)}
        columns = None if data is None else _columns(data, told["target"])
        default = None if columns is None else ", ".join(columns)
        chosen = asked(features, "Features (separated by commas)", default)
        told["features"] = _list(chosen) if chosen != "all" else columns or "all"
        levels = _list(asked(categorical, "Categorical columns among them (separated by commas)", ""))
        told["categorical"] = dict.fromkeys(levels, "agree")
        told["missing"] = asked(missing, "Missing numbers (refuse, mean)", "refuse")
        kind = asked(model, f"Model ({', '.join(MODELS)})", "lasso")
        penalty = asked(lam, "λ (a number, path, cv)", "cv")
        limits = {"minimum_rows": _number(asked(minimum_rows, "Rows that a site must have", "10"))}
        study = parse(
            {**answers, "data": told, "model": {"kind": kind, "lambda": _number(penalty)}, "limits": limits}
        )
        writing.write(study, path)
    out.print(f"[green]✓[/] {path} is written. Read it through: it has more settings than these.")
    out.print(f"  Next: [bold]unpooled study keys {path}[/]", soft_wrap=True)


@app.command()
def keys(
    path: StudyFile = Path("study.toml"),
    folder: Annotated[Path, typer.Option("--out", help="Folder of the keys.")] = Path("keys"),
    host: Annotated[
        list[str] | None, typer.Option(help="More names or addresses of the coordinator.")
    ] = None,
    days: Annotated[int, typer.Option(min=1, help="How long certificates are valid.")] = 365,
) -> None:
    """Make the authority, the coordinator's certificate and a key pair for each site."""
    from unpooled.study.config import load

    with complaints():
        study = load(path)
        from unpooled.study.certificates import hosts_of, read_certificate
        from unpooled.study.keys import make

        made = make(study, path, folder, days, tuple(host or ()))
        certificate = read_certificate(made.certificate)
    until = f"{certificate.not_valid_after_utc:%d %B %Y}"
    out.print(f"[green]✓[/] Keys of the study [bold]{study.name}[/], valid until {until}")
    out.print(f"  {folder / 'coordinator'}  stays here; the coordinator is known as", soft_wrap=True)
    out.print(f"    {', '.join(hosts_of(certificate))}", soft_wrap=True)
    for site in study.sites:
        out.print(
            f"  {made.site(site)}  goes to [bold]{site}[/], by a way that nobody else can read",
            soft_wrap=True,
        )
    out.print(f"  In it are the site's own key ({study.sites[0]}.key and so on), ca.crt and study.toml.")
    out.print(f"  Next: [bold]unpooled study run {path} --keys {folder}[/]", soft_wrap=True)
    out.print("  and at each site: [bold]unpooled site join --study study.toml --data …[/]", soft_wrap=True)


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
            f"Study [bold]{study.name}[/] on {study.address}; at least {study.minimum_sites} sites are needed"
        )
        chosen = [] if results is None else [f"--results {results}"]
        chosen += ["--insecure"] if insecure else [f"--keys {keys}"]
        chosen += [] if bind is None else [f"--bind {bind}"]
        again = " ".join([f"unpooled study run {path}", *chosen, "--resume"])
        try:
            summary = coordinate(
                study, path, folder, None if insecure else keys, out, resume=resume, bind=bind
            )
        except StoppedError as error:
            out.print(f"[red]✗[/] {_escaped(error)}", soft_wrap=True)
            out.print("  What was answered is kept. To go on:")
            out.print(f"  [bold]{again}[/]", soft_wrap=True)
            raise typer.Exit(3) from None
        except KeyboardInterrupt:
            out.print("Interrupted. What was answered is kept. To go on:")
            out.print(f"  [bold]{again}[/]", soft_wrap=True)
            raise typer.Exit(130) from None
    out.print(summary, markup=False, soft_wrap=True)
    out.print(f"[green]✓[/] {folder}: coefficients.csv, result.json, summary.txt", soft_wrap=True)


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

        if isinstance(error, IsADirectoryError | NotADirectoryError | FileExistsError | PermissionError):
            error = StudyError(f"{error.filename}: {error.strerror}")
        if isinstance(error, StudyError):
            out.print(f"[red]✗[/] {_escaped(error)}", soft_wrap=True)
            raise typer.Exit(2) from None


def _escaped(error: Exception) -> str:
    from rich.markup import escape

    return escape(str(error))


def _columns(path: Path, target: str) -> list[str]:
    """The columns of a table but the target and what looks like an identifier."""
    from unpooled.study.columns import looks_like_id
    from unpooled.study.table import read

    table, kept = read(path), []
    for name in table.columns:
        why = looks_like_id(name, table)
        if why and name != target:
            out.print(
                f"  {name!r} is not among the features: it looks like an identifier ({why})", markup=False
            )
        elif name != target:
            kept.append(name)
    return kept


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _number(text: str) -> Any:
    """A number where the text is one; else the text, which is then checked as any other."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
