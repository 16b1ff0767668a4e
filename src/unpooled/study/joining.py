"""``unpooled site join``: a SuperNode that asks the desk of this process, until the study is over."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from unpooled.flower.guarded import ProcessError
from unpooled.flower.supernode import SuperNode
from unpooled.study.config import Study, StudyError
from unpooled.study.desk import StudyDesk
from unpooled.study.link import DeskServer

LOOK = 0.2  # seconds between two looks
LINGER = 5.0  # seconds in which the last reply gets through
REGISTERING = 180.0  # seconds in which a coordinator registers all keys, or gives up one that was killed
UNKNOWN = "Failed to activate SuperNode"  # what Flower says of a key that is not registered, or not yet
PAUSE = 2.0  # seconds until a node that ended is started again


def join(
    study: Study, desk: StudyDesk, key: Path | None, ca: Path | None, logs: Path, say: Callable[[str], None]
) -> str:
    """Take part until the study is over; what the coordinator says at its end.

    A node that was connected and ends, because the coordinator was started anew, is started again.
    """
    last = time.monotonic()  # when this site was last connected, or began
    refused = float("inf")  # since when the coordinator has been there and has not taken it in
    said = ""
    with DeskServer(desk) as server:
        config = {"client-id": desk.site, "desk": str(server.folder)}
        while True:
            try:
                with SuperNode(logs, study.address, ca, key, config) as node:
                    node.until_connected(max(last + study.join_timeout - time.monotonic(), 1.0))
                    say(f"connected to {study.address} as {desk.site}")
                    said = ""
                    while node.returncode is None and not desk.told:
                        time.sleep(LOOK)
                    if desk.told:
                        time.sleep(LINGER)
                        return _ended(desk)
                last, refused = time.monotonic(), float("inf")
                now = f"the connection to {study.address} is lost; trying again"
            except ProcessError as error:
                words, then = str(error), time.monotonic()
                refused = min(refused, then) if UNKNOWN in words else float("inf")
                is_late = then > min(last + study.join_timeout, refused + REGISTERING)
                if is_late or not _may_pass(words):
                    raise StudyError(_translated(words, study, logs)) from None
                now = _not_yet(words, study)
            if now != said:
                say(now)
                said = now
            time.sleep(PAUSE)


def _may_pass(words: str) -> bool:
    """Whether the coordinator may not be there yet, or may still be registering keys."""
    return "Exit Code: 305" in words and "certificate" not in words.lower()


def _not_yet(words: str, study: Study) -> str:
    if UNKNOWN in words:
        return (
            f"{study.address} does not take this site in yet: it is starting, or has not let go of this "
            "site's last connection, which takes up to a minute; trying again"
        )
    return f"no coordinator answers at {study.address} yet; trying again"


def _ended(desk: StudyDesk) -> str:
    """What was said at the end; a ``StudyError`` where that is no result."""
    said = desk.told[-1]
    if "unfit" in said:
        raise StudyError("this site does not fit the study:\n  " + "\n  ".join(said["unfit"]))
    if "failed" in said:
        raise StudyError(f"the study is over: {said['failed']}")
    return str(said.get("done", ""))


def _translated(words: str, study: Study, logs: Path) -> str:
    """What Flower says, in words of a study."""
    low, more = words.lower(), f" The log is {logs / 'supernode.log'}."
    if UNKNOWN.lower() in low:
        return (
            f"{study.address} does not take this site's key: it was not made for this study, "
            f"or another process has joined with it{more}"
        )
    if "certificate_verify_failed" in low or "handshake failed" in low or "ssl_error" in low:
        return f"{study.address} did not show a certificate that ca.crt vouches for.{more}"
    if "did not connect" in low:
        return (
            f"no coordinator answered at {study.address} within {study.join_timeout:g} s "
            f"(limits.join_timeout).{more}"
        )
    return f"{words.splitlines()[0].rstrip(':')}.{more}"
