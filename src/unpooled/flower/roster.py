"""Which client is at which node."""

from __future__ import annotations

import time
from typing import Any

from unpooled.flower.mailbox import post, pull
from unpooled.flower.records import NotOursError, reply_of
from unpooled.remote.failures import DuplicateClientError
from unpooled.remote.messages import Holder, Request

HELLO = Request("hello", {}, {})
"""Asks for a node's client id; every client app of ours answers it without a look at its rows."""


class Roster:
    """The nodes of a run by their client ids: those they tell, or those that the coordinator gave to keys.

    A node is asked once. One that tells an id which another node has already, gets it when that node leaves.
    """

    def __init__(self, grid: Any, poll_seconds: float, hello_seconds: float):
        self.grid, self.poll_seconds, self.hello_seconds = grid, poll_seconds, hello_seconds
        self._claims: dict[int, Holder] = {}  # in the order in which they were told
        self._asked: dict[str, int] = {}  # hellos without an answer so far
        self._since: dict[int, str] = {}  # when Flower last took a node in

    def look(self) -> dict[Holder, int]:
        """Everyone's node now; who has come since the last look is asked for an id."""
        nodes = list(self.grid.get_nodes())
        here = {node.node_id: node.name for node in nodes}
        self._since = {node.node_id: node.last_activated_at for node in nodes}
        self._claims = {node: name for node, name in self._claims.items() if node in here}
        self._asked = {number: node for number, node in self._asked.items() if node in here}
        self._claims |= {node: name for node, name in here.items() if name and node not in self._claims}
        new = set(here) - set(self._claims) - set(self._asked.values())
        self._hello(new)
        found: dict[Holder, int] = {}
        for node, name in self._claims.items():
            found.setdefault(name, node)
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

    def restarted(self) -> set[int]:
        """Nodes that were away since the last look and are back under the id of their key.

        What was on its way to such a node is lost, and Flower says so only if it is asked while it is away.
        """
        return {
            node.node_id
            for node in self.grid.get_nodes()
            if node.last_activated_at != self._since.get(node.node_id, node.last_activated_at)
        }

    def _hello(self, nodes: set[int]) -> None:
        """Ask nodes for their ids, and wait for the answers for as long as they may take."""
        self._asked |= post(self.grid, dict.fromkeys(sorted(nodes), HELLO), self.hello_seconds)
        deadline = time.monotonic() + self.hello_seconds
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
