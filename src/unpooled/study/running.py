"""``unpooled study run``: the SuperLink, the server app in it, and what is seen of both on the terminal."""

from __future__ import annotations

import ipaddress
import time
from pathlib import Path

from rich.console import Console

from unpooled.flower.app_folder import Setting, write_app
from unpooled.flower.guarded import ProcessError
from unpooled.flower.processes import Certificates, SuperLink
from unpooled.study.board import Board
from unpooled.study.config import Study, StudyError
from unpooled.study.coordinator import StoppedError
from unpooled.study.events import Follower
from unpooled.study.keys import Keys, check_server

LOOK = 0.2  # seconds between two looks at what the server app says
ASK = 10.0  # seconds between two looks at whether it is still there


def is_loopback(host: str) -> bool:
    """Whether a host is this machine and nothing else."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def refuse_in_clear(study: Study) -> None:
    """``insecure`` is for trying things out on one machine."""
    if not is_loopback(study.host):
        raise StudyError(
            f"--insecure is for loopback addresses such as 127.0.0.1, and the study's is {study.address}: "
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
) -> str:
    """Run a study over Flower; its summary. ``keys`` None talks in clear, on loopback only."""
    results.mkdir(parents=True, exist_ok=True)
    if (results / "result.json").exists():
        raise StudyError(
            f"{results / 'result.json'} is there already: move it away, or choose another folder"
        )
    logs = results / "logs"
    logs.mkdir(exist_ok=True)
    events = logs / "events.jsonl"
    events.unlink(missing_ok=True)
    host = bind or (study.host if is_loopback(study.host) else "0.0.0.0")
    host = "127.0.0.1" if host == "localhost" else host
    config: dict[str, Setting] = {
        "study": str(path.absolute()),
        "results": str(results.absolute()),
        "events": str(events.absolute()),
        "resume": resume,
    }
    app = write_app(
        logs / "app", "unpooled.study.apps:server", "unpooled.study.apps:client", config, "unpooled-study"
    )
    try:
        with SuperLink(logs, host, study.port, _tls(study, keys), keys is not None) as link:
            if keys is not None:
                for site in study.sites:
                    link.register(Keys(keys).public(site), site)
            number = link.run(app)
            with Board(console, study.sites) as board:
                return _followed(link, number, Follower(events), board)
    except ProcessError as error:
        raise StudyError(_translated(str(error), study, logs)) from None


def _tls(study: Study, keys: Path | None) -> Certificates | None:
    if keys is None:
        refuse_in_clear(study)
        return None
    own = Keys(keys)
    check_server(own, study.host)
    missing = [site for site in study.sites if not own.public(site).is_file()]
    if missing:
        raise StudyError(f"{own.public(missing[0])} is missing: the keys were made for other sites")
    return Certificates(own.ca.absolute(), own.certificate.absolute(), own.key.absolute())


def _followed(link: SuperLink, number: int, follower: Follower, board: Board) -> str:
    """Show what happens until the study ends."""
    asked = time.monotonic()
    while True:
        for event in follower.new():
            kind = event.pop("event")
            if kind == "done":
                return str(event["summary"])
            if kind == "failed":
                raise (StoppedError if event["resumable"] else StudyError)(event["text"])
            board.see(kind, event)
        if time.monotonic() - asked > ASK:
            asked = time.monotonic()
            status = link.status(number)
            if status.is_finished and not follower.path.exists():
                raise StudyError(f"the coordinator did not start ({status.details or status.status})")
            if status.is_finished and not (late := follower.new()):
                raise StoppedError(f"the coordinator ended early ({status.details or status.status})")
            if status.is_finished:
                for event in late:
                    if event["event"] == "done":
                        return str(event["summary"])
        time.sleep(LOOK)


def _translated(words: str, study: Study, logs: Path) -> str:
    """What Flower says, in words of a study."""
    if "address already in use" in words.lower():
        return f"port {study.port} is in use on this machine: another study may be running"
    return f"{words.splitlines()[0]}; the logs are in {logs}"
