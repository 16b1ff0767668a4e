"""The way from Flower's processes at a site to the desk: a socket that only this user can open.

Flower starts a process for each message; the rows, the desk and the audit file stay with ``site join``, which
outlives them all.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
import threading
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any, Self

from unpooled.arrays import Arrays
from unpooled.remote.direct import Answers
from unpooled.remote.messages import Reply, Request
from unpooled.remote.packing import reply_bytes, reply_from, request_bytes, request_from


class DeskServer:
    """Lets other processes of this user ask a desk, one request at a time. ``folder`` is the way to it."""

    def __init__(self, desk: Answers):
        self.desk = desk
        self.folder = Path(tempfile.mkdtemp(prefix="unpooled-"))  # readable by its owner only
        key = secrets.token_bytes(32)
        (self.folder / "key").write_bytes(key)
        self.listener = Listener(str(self.folder / "desk"), "AF_UNIX", authkey=key)
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection: Connection[Any, Any] = self.listener.accept()
            except OSError:  # closed
                return
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
        key = (self.folder / "key").read_bytes()
        with Client(str(self.folder / "desk"), "AF_UNIX", authkey=key) as connection:
            connection.send_bytes(request_bytes(request))
            return reply_from(connection.recv_bytes())

    def state(self) -> tuple[dict[str, Any], Arrays]:
        """Nothing: the desk outlives whoever asks it."""
        return {}, {}

    def restore(self, spec: dict[str, Any], arrays: Arrays) -> None:
        """Nothing was taken away."""
