"""What crosses between a server and the holders of the clients' rows, and what carries it.

A holder is an actor on a cluster or a node at a site; it holds the rows of one client or of several. The
server sends it a ``Request`` and gets a ``Reply`` or a ``Failure``. Only plain data crosses: what JSON can
hold, and named arrays. A ``Transport`` carries them and does not know what they mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from unpooled.kernels.arrays import Arrays

Holder = str
"""The name of a holder: a site's id, or the number of an actor."""


class Request(NamedTuple):
    """What a holder is asked: ``kind`` names one of its functions, ``spec`` has its settings."""

    kind: str
    spec: Mapping[str, Any]
    arrays: Arrays


class Reply(NamedTuple):
    """What a holder answers."""

    spec: Mapping[str, Any]
    arrays: Arrays


class Failure(NamedTuple):
    """Why there is no reply, in words for whoever runs the study."""

    reason: str


class Transport(Protocol):
    """Carries requests to holders and their replies back."""

    def holders(self) -> tuple[Holder, ...]:
        """Everyone who can be asked now, sorted."""

    def exchange(self, requests: Mapping[Holder, Request]) -> dict[Holder, Reply | Failure]:
        """Ask each holder; whoever does not answer in time, or cannot, has a ``Failure``."""

    def close(self) -> None:
        """Let go of what was started."""


class Through:
    """A transport around another one; subclasses do something about what passes."""

    def __init__(self, transport: Transport):
        self.transport = transport

    def holders(self) -> tuple[Holder, ...]:
        """Everyone who can be asked now, sorted."""
        return self.transport.holders()

    def exchange(self, requests: Mapping[Holder, Request]) -> dict[Holder, Reply | Failure]:
        """Ask each holder."""
        return self.transport.exchange(requests)

    def close(self) -> None:
        """Let go of what was started."""
        self.transport.close()


class Answers(Protocol):
    """Answers requests: a ``ClientServer``, or a wrapper of one."""

    def handle(self, request: Request) -> Reply:
        """The answer."""


class Direct:
    """A transport without a network: client servers in this process, for rehearsals and tests."""

    def __init__(self, servers: Mapping[Holder, Answers]):
        self.servers = dict(servers)

    def holders(self) -> tuple[Holder, ...]:
        """Everyone, sorted."""
        return tuple(sorted(self.servers))

    def exchange(self, requests: Mapping[Holder, Request]) -> dict[Holder, Reply | Failure]:
        """Ask each in turn; what one raises becomes a ``Failure``."""
        return {holder: self._one(holder, request) for holder, request in requests.items()}

    def _one(self, holder: Holder, request: Request) -> Reply | Failure:
        if holder not in self.servers:
            return Failure("it is not here")
        return answered(self.servers[holder], request)

    def close(self) -> None:
        """There is nothing to let go of."""


def answered(server: Answers, request: Request) -> Reply | Failure:
    """A client server's reply, or why it has none, whatever it raises."""
    try:
        return server.handle(request)
    except Exception as error:
        return Failure(f"{type(error).__name__}: {error}")
