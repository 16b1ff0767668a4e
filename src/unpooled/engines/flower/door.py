"""A listening socket that keeps strangers from using up what the process has.

A connection that has not shown a valid key within a few seconds is closed. Where there are too many, in all
or from one address, the stranger that has been there longest makes room; those who have shown a key stay.
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
BACKLOG = 512  # connections that wait to be taken; beyond it callers try again after seconds

Peer = tuple[str, int]


class Door(socket.socket):
    """Listens, and knows who is inside. Used by one event loop."""

    def __init__(self, host: str, port: int):
        super().__init__(socket.AF_INET6 if ":" in host else socket.AF_INET)
        self.guests: dict[Peer, Guest] = {}  # in the order in which they came
        self.most = min(MOST, _open_files() // 4)
        self._spare = os.open(os.devnull, os.O_RDONLY)  # given up for a moment where no file can be opened
        try:
            self.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.bind((host, port))
            self.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # or each answer waits 40 ms
        except OSError:
            self.close()
            raise

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection; ``ConnectionAbortedError`` where it is turned away."""
        try:
            connection, address = super().accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE) and self._turn_away():
                raise ConnectionAbortedError("no more files can be opened") from None
            raise
        peer = (str(address[0]), int(address[1]))
        near = [guest for guest in self.guests.values() if guest.peer[0] == peer[0]]
        if not (self._has_room(near, MOST_FROM_ONE) and self._has_room([*self.guests.values()], self.most)):
            connection.close()
            raise ConnectionAbortedError(f"too many connections, {len(near)} of them from {peer[0]}")
        guest = Guest(self, peer, connection)
        self.guests[peer] = guest
        return guest, address

    def busy(self, peer: Peer) -> None:
        """Whoever has shown a valid key is not hurried while its request is under way."""
        if peer in self.guests:
            self.guests[peer].is_known, self.guests[peer].deadline = True, float("inf")

    def idle(self, peer: Peer) -> None:
        """The request is done; the next one has its own time."""
        if peer in self.guests:
            self.guests[peer].deadline = time.monotonic() + STRANGER_SECONDS

    def sweep(self) -> None:
        """Close what has been silent for too long."""
        now = time.monotonic()
        for guest in [guest for guest in self.guests.values() if guest.deadline < now]:
            guest.leave()

    def close(self) -> None:
        """Listen no more."""
        super().close()
        if self._spare >= 0:
            os.close(self._spare)
            self._spare = -1

    def _has_room(self, guests: list[Guest], most: int) -> bool:
        """Whether there is room for one more, perhaps because a stranger has just been asked to leave."""
        if len(guests) < most:
            return True
        strangers = [guest for guest in guests if not guest.is_known]
        if strangers:
            strangers[0].leave()
        return bool(strangers)

    def _turn_away(self) -> bool:
        """Take the next connection with the spare file and close it.

        Otherwise the loop would be offered it again and again. False where the spare file was lost to another
        thread: then the event loop rests for a moment.
        """
        if self._spare >= 0:
            os.close(self._spare)
            self._spare = -1
        with contextlib.suppress(OSError):
            super().accept()[0].close()
        with contextlib.suppress(OSError):
            self._spare = os.open(os.devnull, os.O_RDONLY)
        return self._spare >= 0


class Guest(socket.socket):
    """A connection that was let in."""

    def __init__(self, door: Door, peer: Peer, connection: socket.socket):
        super().__init__(connection.family, connection.type, connection.proto, connection.detach())
        self.door, self.peer, self.is_known = door, peer, False
        self.deadline = time.monotonic() + STRANGER_SECONDS

    def leave(self) -> None:
        """End the connection; whoever reads from it finds its end and closes it."""
        self.door.guests.pop(self.peer, None)
        with contextlib.suppress(OSError):
            self.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Count no more."""
        if self.door.guests.get(self.peer) is self:
            del self.door.guests[self.peer]
        super().close()


def _open_files() -> int:
    """How many files this process may have open."""
    try:
        import resource
    except ImportError:
        return 4 * MOST
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 4 * MOST if soft == resource.RLIM_INFINITY else soft
