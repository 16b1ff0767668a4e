"""Which client is at which node, and messages to nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from unpooled.engines.flower.environment import app
from unpooled.engines.flower.records import NotOursError, reply_of, request_record
from unpooled.engines.remote.failures import DuplicateClientError
from unpooled.engines.remote.messages import Holder, Request
from unpooled.engines.retry import Retry

LEEWAY = 60.0  # seconds that Flower keeps a message after its answer is due
HELLO = Request("hello", {}, {})
"""Asks for a node's client id; every client app of ours answers it without reading its rows."""


class Place(NamedTuple):
    """A node, and since when it is up: one that was restarted has lost what it was asked."""

    node: int
    since: str


class Roster:
    """The nodes of a run by client id: the one a node tells, or the one that the coordinator gave to its key.

    Each node is asked once. A node that claims the id of another one gets it when that other node leaves.
    """

    def __init__(self, grid: Any, poll_seconds: float, hello_seconds: float):
        self.grid, self.poll_seconds, self.hello_seconds = grid, poll_seconds, hello_seconds
        self._claims: dict[int, Holder] = {}  # in the order in which they were told
        self._asked: dict[str, int] = {}  # hellos without an answer so far

    def look(self, patient: bool = True) -> dict[Holder, Place]:
        """Where everyone is now. Ask new nodes for their ids; where ``patient``, wait for the answers."""
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
        """Refuse a client id that two live nodes claim. Flower may not know yet that one of them is dead."""
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
        """Ask nodes for their ids; where ``patient``, wait for the answers."""
        self._asked |= post(self.grid, dict.fromkeys(sorted(nodes), HELLO), self.hello_seconds)
        for _ in Retry(seconds=self.hello_seconds if patient else 0.0, pause=self.poll_seconds):
            self._hear()
            if not nodes & set(self._asked.values()):
                break

    def _hear(self) -> None:
        """Read the answers that have arrived."""
        for number, message in pull(self.grid, self._asked).items():
            node = self._asked.pop(number)
            if not message.has_error():
                try:
                    self._claims[node], _ = reply_of(message.content)
                except NotOursError as error:
                    raise ValueError(f"a node runs another app than unpooled's: {error}") from None


def post(
    grid: Any,
    requests: Mapping[int, Request],
    seconds: float,
    record: Callable[[int, Request], Any] = lambda node, request: request_record(request),
) -> dict[str, int]:
    """Send each node its request; the ids of the messages that were sent, with their nodes.

    ``record`` makes the record of the request to a node.
    """
    messages = [
        app().Message(
            content=record(node, request),
            dst_node_id=node,
            message_type="train" if request.kind == "train" else "query",
            ttl=seconds + LEEWAY,
        )
        for node, request in requests.items()
    ]
    sent = set(grid.push_messages(messages)) if messages else set()
    numbers = {message.metadata.message_id: message.metadata.dst_node_id for message in messages}
    return {number: node for number, node in numbers.items() if number in sent}


def pull(grid: Any, numbers: Iterable[str]) -> dict[str, Any]:
    """The replies that have arrived, by the id of the message that each answers.

    The sender does not tell: Flower itself sends the error for a node that is gone.
    """
    wanted = set(numbers)
    if not wanted:
        return {}
    found = {message.metadata.reply_to_message_id: message for message in grid.pull_messages(wanted)}
    return {number: message for number, message in found.items() if number in wanted}
