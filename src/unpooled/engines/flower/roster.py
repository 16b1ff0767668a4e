"""Which client is at which node."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from unpooled.engines.flower.mailbox import post, pull
from unpooled.engines.flower.records import NotOursError, reply_of
from unpooled.engines.remote.failures import DuplicateClientError
from unpooled.engines.remote.messages import Holder, Request

HELLO = Request("hello", {}, {})
"""Asks for a node's client id; every client app of ours answers it without a look at its rows."""


class Place(NamedTuple):
    """A node, and since when it is up: one that was started again has lost what it was asked."""

    node: int
    since: str


class Roster:
    """The nodes of a run by their client ids: those they tell, or those that the coordinator gave to keys.

    A node is asked once. One that tells an id which another node has already, gets it when that node leaves.
    """

    def __init__(self, grid: Any, poll_seconds: float, hello_seconds: float):
        self.grid, self.poll_seconds, self.hello_seconds = grid, poll_seconds, hello_seconds
        self._claims: dict[int, Holder] = {}  # in the order in which they were told
        self._asked: dict[str, int] = {}  # hellos without an answer so far

    def look(self, patient: bool = True) -> dict[Holder, Place]:
        """Where everyone is now. Who has come since the last look is asked for an id, and waited for."""
        here = {node.node_id: node for node in self.grid.get_nodes()}
        self._claims = {node: name for node, name in self._claims.items() if node in here}
        self._asked = {number: node for number, node in self._asked.items() if node in here}
        self._claims |= {
            node: info.name for node, info in here.items() if info.name and node not in self._claims
        }
        self._hello(set(here) - set(self._claims) - set(self._asked.values()), patient)
        found: dict[Holder, Place] = {}
        for node, name in self._claims.items():
            found.setdefault(name, Place(node, here[node].last_activated_at))
        return found

    def check(self) -> None:
        """Refuse a client id that two nodes have. One of them may be dead, and Flower not know it yet."""
        self.look()
        for name in sorted(set(self._claims.values())):
            nodes = {node for node, told in self._claims.items() if told == name}
            if len(nodes) > 1:
                for node in nodes:
                    del self._claims[node]
                self._hello(nodes)
                alive = sum(node in self._claims for node in nodes)
                if alive > 1:
                    raise DuplicateClientError(name, alive)

    def _hello(self, nodes: set[int], patient: bool = True) -> None:
        """Ask nodes for their ids; the patient wait for the answers for as long as they may take."""
        self._asked |= post(self.grid, dict.fromkeys(sorted(nodes), HELLO), self.hello_seconds)
        deadline = time.monotonic() + (self.hello_seconds if patient else 0.0)
        self._hear()
        while nodes & set(self._asked.values()) and time.monotonic() < deadline:
            time.sleep(self.poll_seconds)
            self._hear()

    def _hear(self) -> None:
        """Take in the answers that have come."""
        for number, message in pull(self.grid, self._asked).items():
            node = self._asked.pop(number)
            if not message.has_error():
                try:
                    self._claims[node], _ = reply_of(message.content)
                except NotOursError as error:
                    raise ValueError(f"a node runs another app than unpooled's: {error}") from None
