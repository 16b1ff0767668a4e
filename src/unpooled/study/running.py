"""``unpooled study run``: the SuperLink, the server app in it, and what is seen of both on the terminal."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from unpooled.engines.flower.app_folder import Setting, write_app
from unpooled.engines.flower.environment import is_loopback
from unpooled.engines.flower.processes import ProcessError
from unpooled.engines.flower.superlink import Certificates, RunStatus, SuperLink
from unpooled.study.board import Board
from unpooled.study.config import StoppedError, Study, StudyError
from unpooled.study.events import Follower
from unpooled.study.journal import unfinished
from unpooled.study.keys import Keys, check_server

LOOK = 0.2  # seconds between two looks at what the server app says
ASK = 10.0  # seconds between two looks at whether it is still there
ENDING = 3.0  # seconds in which a SuperLink that was killed is seen to have ended
RESTARTS = 3  # of a SuperLink that ends by itself; the answers so far are kept
SERVER, CLIENT = "unpooled.study.apps:server", "unpooled.study.apps:client"


class Ended(NamedTuple):
    """A study that is done: ``folder`` None where its results could not be written; then ``csv`` has them."""

    summary: str
    folder: Path | None
    csv: str


def refuse_in_clear(study: Study, bind: str | None = None) -> None:
    """``insecure`` is for trying things out on one machine: neither called nor listened for elsewhere."""
    for whose, host in (("the study's address", study.host), ("--bind", bind)):
        if host is not None and not is_loopback(host):
            raise StudyError(
                f"--insecure is for loopback addresses such as 127.0.0.1, and {whose} is {host!r}: "
                "without TLS everyone on the way could read and change what is sent"
            )


def run(
    study: Study,
    path: Path,
    results: Path,
    keys: Path | None,
    console: Console,
    *,
    resume: bool = False,
    bind: str | None = None,
) -> Ended:
    """Run a study over Flower. ``keys`` None talks in clear, on loopback only."""
    checkpoint = results / "checkpoint"
    _check_folder(results, checkpoint, resume)
    tls = _tls(study, keys, bind)
    logs = results / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    events = logs / "events.jsonl"
    events.unlink(missing_ok=True)
    host = bind or (study.host if is_loopback(study.host) else "0.0.0.0")
    host = "127.0.0.1" if host == "localhost" else host
    with (
        tempfile.TemporaryDirectory(prefix="unpooled-events-") as spare,
        Board(console, study.sites) as board,
    ):
        follower = Follower(events, Path(spare) / "events.jsonl")
        board.see("starting", {})
        for restart in range(RESTARTS + 1):
            config: dict[str, Setting] = {
                "study": str(path.absolute()),
                "keys": "" if keys is None else str(keys.absolute()),
                "results": str(results.absolute()),
                "events": str(events.absolute()),
                "spare": str(follower.spare),
                "resume": (checkpoint / "state.json").exists() if restart else resume,
            }
            app = write_app(logs / "app", SERVER, CLIENT, config, "unpooled-study")
            try:
                with SuperLink(logs, host, study.port, tls, tls is not None) as link:
                    ended = _carried_out(link, app, study, keys, follower, board)
            except ProcessError as error:
                raise StudyError(_translated(str(error), study, logs)) from None
            if ended is not None:
                return ended
            status = link.process.returncode
            board.see("note", {"text": f"the SuperLink ended (status {status}); it is started again"})
    raise StoppedError(f"the SuperLink ended {RESTARTS + 1} times; its log is {logs / 'superlink.log'}")


def _check_folder(results: Path, checkpoint: Path, resume: bool) -> None:
    """Refuse before anything starts what the server app would refuse later."""
    if checkpoint.exists() and not resume:
        raise unfinished(checkpoint)
    if (results / "result.json").exists() and not checkpoint.exists():
        raise StudyError(
            f"{results / 'result.json'} is there already: move it away, or choose another folder"
        )
    if resume and not checkpoint.exists():
        raise StudyError(f"there is nothing to resume in {checkpoint}")


def _carried_out(
    link: SuperLink, app: Path, study: Study, keys: Path | None, follower: Follower, board: Board
) -> Ended | None:
    """How the study ended; None where the SuperLink ended before that."""
    try:
        if keys is not None:
            for site in study.sites:
                link.register(Keys(keys).public(site), site)
        return _followed(link, link.run(app), follower, board)
    except ProcessError:
        if _has_ended(link):
            return None
        raise


def _has_ended(link: SuperLink) -> bool:
    """Whether something went wrong because the SuperLink was killed, which takes a moment to be seen."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        link.process.wait(ENDING)
        return True
    return False


def _tls(study: Study, keys: Path | None, bind: str | None) -> Certificates | None:
    if keys is None:
        refuse_in_clear(study, bind)
        return None
    own = Keys(keys)
    check_server(own, study.host)
    missing = [site for site in study.sites if not own.public(site).is_file()]
    if missing:
        raise StudyError(f"{own.public(missing[0])} is missing: the keys were made for other sites")
    return Certificates(own.ca.absolute(), own.certificate.absolute(), own.key.absolute())


def _followed(link: SuperLink, number: int, follower: Follower, board: Board) -> Ended | None:
    """Show what happens until the study ends; None where the SuperLink does before."""
    asked, status = time.monotonic(), RunStatus("")
    while True:
        has_ended = link.process.returncode is not None  # and with it the server app: no more is said
        for event in follower.new():
            kind = event.pop("event")
            if kind == "done":
                place = Path(event["folder"]) if event["folder"] else None
                return Ended(str(event["summary"]), place, str(event.get("csv", "")))
            if kind == "failed":
                if event["unexpected"] and _has_ended(link):
                    return None
                raise (StoppedError if event["resumable"] else StudyError)(event["text"])
            board.see(kind, event)
        if has_ended:
            return None
        if status.is_finished:  # and has not said how
            early = f"({status.details or status.status}); its log is {link.folder / 'superlink.log'}"
            if follower.path.exists():
                raise StoppedError(f"the server app ended early {early}")
            raise StudyError(f"the server app did not start {early}")
        if time.monotonic() - asked > ASK:
            asked = time.monotonic()
            status = link.status(number)
        time.sleep(LOOK)


def _translated(words: str, study: Study, logs: Path) -> str:
    """What Flower says, in words of a study."""
    if "address already in use" in words.lower():
        return f"port {study.port} is in use on this machine: another study may be running"
    return f"{words.splitlines()[0]}; the logs are in {logs}"
