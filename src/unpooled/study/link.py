"""The way from Flower's processes at a site to the desk: a socket that only this user can open.

Flower starts a process for each message; the rows, the desk and the audit file stay with ``site join``, which
outlives them all.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import tempfile
import threading
import time
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any, Self

from unpooled.arrays import Arrays
from unpooled.remote.direct import Answers
from unpooled.remote.messages import Reply, Request
from unpooled.remote.packing import reply_bytes, reply_from, request_bytes, request_from

PREFIX, SOCKET, KEY = "unpooled-", "desk", "key"
LET_GO = 1.0  # seconds for an answer that is on its way
PAUSE = 0.05  # seconds after a caller that could not be taken
YOUNG = 60.0  # seconds in which a folder may be one that is just being made


class DeskServer:
    """Lets other processes of this user ask a desk, one request at a time. ``folder`` is the way to it."""

    def __init__(self, desk: Answers):
        sweep()
        self.desk, self.is_closed = desk, False
        self.folder = Path(tempfile.mkdtemp(prefix=PREFIX))  # readable by its owner only
        key = secrets.token_bytes(32)
        (self.folder / KEY).write_bytes(key)
        self.listener = Listener(str(self.folder / SOCKET), "AF_UNIX", authkey=key)
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        while not self.is_closed:
            try:
                connection: Connection[Any, Any] = self.listener.accept()
            except OSError:  # one who left at once; or nothing can be opened just now
                time.sleep(PAUSE)
                continue
            except Exception:  # a stranger without the key
                continue
            with connection:
                try:
                    request = request_from(connection.recv_bytes())
                    connection.send_bytes(reply_bytes(self.desk.handle(request)))
                except (EOFError, OSError):  # whoever asked has gone
                    continue

    def close(self) -> None:
        """Stop listening."""
        self.is_closed = True
        with contextlib.suppress(OSError):  # its folder may be gone
            _listens(self.folder / SOCKET)  # whoever waits for a caller wakes up
        self.thread.join(LET_GO)
        with contextlib.suppress(OSError):
            self.listener.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class DeskLink:
    """A desk in another process."""

    def __init__(self, folder: Path):
        self.folder = folder

    def handle(self, request: Request) -> Reply:
        """Ask it."""
        key = (self.folder / KEY).read_bytes()
        with Client(str(self.folder / SOCKET), "AF_UNIX", authkey=key) as connection:
            connection.send_bytes(request_bytes(request))
            return reply_from(connection.recv_bytes())

    def state(self) -> tuple[dict[str, Any], Arrays]:
        """Nothing: the desk outlives whoever asks it."""
        return {}, {}

    def restore(self, spec: dict[str, Any], arrays: Arrays) -> None:
        """Nothing was taken away."""


def sweep() -> None:
    """Delete what sites of this user left behind that were killed: sockets at which nobody listens."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            about, place = folder.stat(), folder / SOCKET
            is_old = about.st_uid == os.getuid() and time.time() - about.st_mtime > YOUNG
            if is_old and place.is_socket() and not _listens(place):
                shutil.rmtree(folder, ignore_errors=True)


def _listens(place: Path) -> bool:
    """Whether somebody does, without waiting for him: he may be busy, with others in the queue."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(place))
        except ConnectionRefusedError:
            return False
        except BlockingIOError:  # the queue is full
            pass
    return True
