"""What crosses between a server and those who hold the clients' rows, whatever carries it.

A holder is an actor on a cluster or a node at a site; it holds the rows of one client or of several. The
server sends it a ``Request`` and gets a ``Reply`` or a ``Failure``. Only plain data crosses: what JSON can
hold, and named arrays. A ``Transport`` carries them and knows nothing of what they mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from unpooled.kernels.arrays import Arrays

Holder = str
"""The name of a holder: a site's id, or the number of an actor."""


class Request(NamedTuple):
    """What a holder is asked: ``kind`` says which of its functions, ``spec`` with which settings."""

    kind: str
    spec: Mapping[str, Any]
    arrays: Arrays


class Reply(NamedTuple):
    """What a holder answers."""

    spec: Mapping[str, Any]
    arrays: Arrays


class Failure(NamedTuple):
    """Why there is no reply, in words for the one who runs the study."""

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
    """A transport that does something about what another one carries."""

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
