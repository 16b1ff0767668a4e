"""``unpooled site join``: this process answers the coordinator's questions until the study is over."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from unpooled._wording import printable
from unpooled.engines.flower.fleet import ClockError, Fleet, FleetError, RefusedError, UntrustedError
from unpooled.engines.flower.node import Node
from unpooled.engines.flower.signing import Authority
from unpooled.study.config import Study, StudyError
from unpooled.study.desk import StudyDesk

REGISTERING = 180.0  # seconds in which a coordinator registers all keys, or gives up one that was killed
PAUSE = 2.0  # seconds until the next try to connect
LINGER = 20.0  # seconds at most in which the coordinator fetches the last reply
LOG = "site.log"


def join(
    study: Study, desk: StudyDesk, key: Path | None, ca: Path | None, logs: Path, say: Callable[[str], None]
) -> str:
    """Take part until the study is over; what the coordinator says at its end.

    Whatever happens to the connection, it is made anew: every call has a time limit (see ``fleet``), and a
    coordinator that is away is called again for ``limits.join_timeout`` seconds.
    """
    last = time.monotonic()  # when this site was last connected, or began
    refused = float("inf")  # since when the coordinator has been there and has not taken it in
    said = ""
    with _logging(logs), _called(study, ca, _key(key)) as fleet:
        node = Node(fleet, desk.site, desk, None if ca is None else Authority(ca.read_bytes()), say)
        while True:
            is_connected = False
            try:
                with node:
                    is_connected, said = True, ""
                    say(f"connected to {study.address} as {desk.site}")
                    while not desk.told:
                        node.step()
                    node.linger(LINGER)
                return _ended(desk)
            except FleetError as error:
                logging.getLogger("unpooled.study").warning("%s", error)
                if desk.told:  # and only its receipt was lost
                    return _ended(desk)
                then = time.monotonic()
                if is_connected:
                    last, refused = then, float("inf")
                    now = f"the connection to {study.address} is lost; trying again"
                else:
                    is_refused = isinstance(error, RefusedError)
                    refused = min(refused, then) if is_refused else float("inf")
                    is_late = then > min(last + study.join_timeout, refused + REGISTERING)
                    if is_late or isinstance(error, ClockError | UntrustedError):
                        raise StudyError(_translated(error, study, logs)) from None
                    now = _not_yet(error, study)
            if now != said:
                say(now)
                said = now
            time.sleep(PAUSE)


def _key(path: Path | None) -> ec.EllipticCurvePrivateKey:
    """The site's key; one for the moment where a study has none."""
    if path is None:
        return ec.generate_private_key(ec.SECP384R1())
    key = serialization.load_ssh_private_key(path.read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)  # see ``keys.check_site``
    return key


def _called(study: Study, ca: Path | None, key: ec.EllipticCurvePrivateKey) -> Fleet:
    try:
        return Fleet(study.address, ca, key)
    except FleetError as error:
        raise StudyError(str(error)) from None


class _Plain(logging.Formatter):
    """Spells out in what others say what would control the terminal of whoever reads the log."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # logging's name
        record.message = printable(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:
        return printable(super().formatException(ei), lines=True)


@contextlib.contextmanager
def _logging(folder: Path) -> Iterator[None]:
    """What goes wrong is written in full to a file of the site's, and to no terminal."""
    folder.mkdir(parents=True, exist_ok=True)
    handler = logging.FileHandler(folder / LOG, encoding="utf-8")
    handler.setFormatter(_Plain("%(asctime)s %(levelname)s %(message)s"))
    log = logging.getLogger("unpooled")
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        handler.close()


def _not_yet(error: FleetError, study: Study) -> str:
    if isinstance(error, RefusedError):
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


def _translated(error: FleetError, study: Study, logs: Path) -> str:
    """What went wrong, in words of a study."""
    more = f" The log is {logs / LOG}."
    if isinstance(error, ClockError):
        return str(error)
    if isinstance(error, RefusedError):
        return (
            f"{study.address} does not take this site's key: it was not made for this study, "
            f"or another process has joined with it.{more}"
        )
    if isinstance(error, UntrustedError):
        return f"{study.address} did not show a certificate that ca.crt vouches for ({error}).{more}"
    return (
        f"no coordinator answered at {study.address} within {study.join_timeout:g} s "
        f"(limits.join_timeout): {error}.{more}"
    )
