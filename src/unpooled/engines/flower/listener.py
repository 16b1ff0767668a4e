"""A listening socket that limits connections, so that strangers cannot exhaust the process.

A connection that has not shown a valid key within a few seconds is closed. Where there are too many, in all
or from one address, the oldest connection without a key is closed; those that have shown a key stay.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import time
from typing import Any

MOST = 512  # connections in all; fewer where the process may not open four times as many files
MOST_FROM_ONE = 64  # from one address: sites may share one, and each has two or three
STRANGER_SECONDS = 10.0  # to shake hands, send headers and show a key, each time anew
BACKLOG = 512  # connections that wait to be accepted; callers beyond it try again seconds later

Peer = tuple[str, int]


class Listener(socket.socket):
    """Listens, and keeps the open connections. Used by one event loop."""

    def __init__(self, host: str, port: int):
        super().__init__(socket.AF_INET6 if ":" in host else socket.AF_INET)
        self.connections: dict[Peer, Connection] = {}  # in the order of arrival
        self.most = min(MOST, _open_files() // 4)
        self._spare = os.open(os.devnull, os.O_RDONLY)  # closed for a moment where no file can be opened
        try:
            self.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.bind((host, port))
            self.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # or each answer waits 40 ms
        except OSError:
            self.close()
            raise

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection; ``ConnectionAbortedError`` where it is refused."""
        try:
            accepted, address = super().accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE) and self._turn_away():
                raise ConnectionAbortedError("no more files can be opened") from None
            raise
        peer = (str(address[0]), int(address[1]))
        near = [connection for connection in self.connections.values() if connection.peer[0] == peer[0]]
        if not (
            self._has_room(near, MOST_FROM_ONE) and self._has_room([*self.connections.values()], self.most)
        ):
            accepted.close()
            raise ConnectionAbortedError(f"too many connections, {len(near)} of them from {peer[0]}")
        connection = Connection(self, peer, accepted)
        self.connections[peer] = connection
        return connection, address

    def busy(self, peer: Peer) -> None:
        """Lift the deadline of a connection that has shown a valid key, while its request is under way."""
        if peer in self.connections:
            self.connections[peer].is_known, self.connections[peer].deadline = True, float("inf")

    def idle(self, peer: Peer) -> None:
        """Set a new deadline: the request is done, and the next one has its own time."""
        if peer in self.connections:
            self.connections[peer].deadline = time.monotonic() + STRANGER_SECONDS

    def sweep(self) -> None:
        """Close connections that are past their deadline."""
        now = time.monotonic()
        for connection in [
            connection for connection in self.connections.values() if connection.deadline < now
        ]:
            connection.leave()

    def close(self) -> None:
        """Stop listening."""
        super().close()
        if self._spare >= 0:
            os.close(self._spare)
            self._spare = -1

    def _has_room(self, connections: list[Connection], most: int) -> bool:
        """Whether there is room for one more, if need be after closing the oldest stranger."""
        if len(connections) < most:
            return True
        strangers = [connection for connection in connections if not connection.is_known]
        if strangers:
            strangers[0].leave()
        return bool(strangers)

    def _turn_away(self) -> bool:
        """Accept the next connection with the spare file and close it.

        Otherwise the loop would be offered it again and again. False where another thread took the spare
        file: then the event loop waits for a moment.
        """
        if self._spare >= 0:
            os.close(self._spare)
            self._spare = -1
        with contextlib.suppress(OSError):
            super().accept()[0].close()
        with contextlib.suppress(OSError):
            self._spare = os.open(os.devnull, os.O_RDONLY)
        return self._spare >= 0


class Connection(socket.socket):
    """A connection that was accepted."""

    def __init__(self, listener: Listener, peer: Peer, connection: socket.socket):
        super().__init__(connection.family, connection.type, connection.proto, connection.detach())
        self.listener, self.peer, self.is_known = listener, peer, False
        self.deadline = time.monotonic() + STRANGER_SECONDS

    def leave(self) -> None:
        """End the connection; whoever reads from it sees the end and closes it."""
        self.listener.connections.pop(self.peer, None)
        with contextlib.suppress(OSError):
            self.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close it, and forget it."""
        if self.listener.connections.get(self.peer) is self:
            del self.listener.connections[self.peer]
        super().close()


def _open_files() -> int:
    """How many files this process may have open."""
    try:
        import resource
    except ImportError:
        return 4 * MOST
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 4 * MOST if soft == resource.RLIM_INFINITY else soft
