"""A transport between Flower's strategies, which are asked for messages and given replies, and a round.

A round is a function that asks and goes on with the answers; Flower wants it in two parts. So it is run
twice, to the same question: first until it asks, then with the answers at hand.
"""

from __future__ import annotations

from collections.abc import Mapping

from unpooled.engines.remote.messages import Failure, Holder, Reply, Request, Through, Transport


class Asked(Exception):  # noqa: N818, it is no error
    """A round has come to its question."""

    def __init__(self, requests: Mapping[Holder, Request]):
        super().__init__("a round asks")
        self.requests = dict(requests)


class Relay(Through):
    """Carries requests of one ``kind`` by hand, all others through another transport."""

    def __init__(self, through: Transport, kind: str):
        super().__init__(through)
        self.kind = kind
        self.answers: Mapping[Holder, Reply | Failure] | None = None

    def exchange(self, requests: Mapping[Holder, Request]) -> dict[Holder, Reply | Failure]:
        """The answers at hand; where there are none yet, ``Asked`` is raised with the requests."""
        if any(request.kind != self.kind for request in requests.values()):
            return self.transport.exchange(requests)
        if self.answers is None:
            raise Asked(requests)
        silent = Failure("it did not answer in time")
        return {holder: self.answers.get(holder, silent) for holder in requests}
