"""The messages that a strategy hands to Flower's loop, and whose replies come back from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from unpooled.engines.flower.installed import app
from unpooled.engines.flower.mailbox import LEEWAY
from unpooled.engines.flower.records import request_record
from unpooled.engines.flower.transport import GridTransport, answer
from unpooled.engines.remote.messages import Failure, Holder, Reply, Request


class Letters:
    """One round's after the other's, to the nodes that a transport knows."""

    def __init__(self, transport: GridTransport):
        self.transport = transport
        self._sent: list[tuple[Any, Holder]] = []

    def write(self, requests: Mapping[Holder, Request], kind: str, server_round: int) -> list[Any]:
        """A message to each holder that is there."""
        nodes = self.transport.roster.look()
        self._sent = [
            (
                app().Message(
                    content=request_record(request),
                    dst_node_id=nodes[holder].node,
                    message_type=kind,
                    group_id=str(server_round),
                    ttl=self.transport.timeout + LEEWAY,
                ),
                holder,
            )
            for holder, request in requests.items()
            if holder in nodes
        ]
        return [message for message, _ in self._sent]

    def read(self, replies: Iterable[Any]) -> dict[Holder, Reply | Failure]:
        """Replies by holder: a message's id tells, because Flower's own errors come from no node."""
        holders = {message.metadata.message_id: holder for message, holder in self._sent}
        found: dict[Holder, Reply | Failure] = {}
        for reply in replies:
            holder = holders.get(reply.metadata.reply_to_message_id)
            if holder is not None:
                found[holder] = answer(holder, reply)
        return found
