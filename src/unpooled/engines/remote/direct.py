"""Desks in this process: for tests of everything else, and for a federation whose parts are at hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from unpooled.engines.remote.messages import Failure, Holder, Reply, Request


class Answers(Protocol):
    """Who answers requests: a ``Desk``, or what stands around one."""

    def handle(self, request: Request) -> Reply:
        """The answer."""


class Direct:
    """A transport without a network."""

    def __init__(self, desks: Mapping[Holder, Answers]):
        self.desks = dict(desks)

    def holders(self) -> tuple[Holder, ...]:
        """Everyone, sorted."""
        return tuple(sorted(self.desks))

    def exchange(self, requests: Mapping[Holder, Request]) -> dict[Holder, Reply | Failure]:
        """Ask each desk in turn; what a desk raises is a failure with its words."""
        return {holder: self._one(holder, request) for holder, request in requests.items()}

    def _one(self, holder: Holder, request: Request) -> Reply | Failure:
        if holder not in self.desks:
            return Failure("it is not here")
        return answered(self.desks[holder], request)

    def close(self) -> None:
        """There is nothing to let go of."""


def answered(desk: Answers, request: Request) -> Reply | Failure:
    """A desk's reply, or why it has none, whatever it raises: also for other transports."""
    try:
        return desk.handle(request)
    except Exception as error:
        return Failure(f"{type(error).__name__}: {error}")
