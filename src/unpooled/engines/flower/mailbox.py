"""Messages to nodes, and the replies to them by the id of the message that they answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from unpooled.engines.flower.installed import app
from unpooled.engines.flower.records import request_record
from unpooled.engines.remote.messages import Request

LEEWAY = 60.0  # seconds that Flower keeps a message beyond the time it has for an answer


def post(
    grid: Any,
    requests: Mapping[int, Request],
    seconds: float,
    record: Callable[[int, Request], Any] = lambda node, request: request_record(request),
) -> dict[str, int]:
    """Send each node its request; the messages' ids with their nodes. Who cannot be sent to is left out.

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
    """The replies that are there, by the id of the message that each answers.

    Errors that Flower makes up for a node that is gone come from itself, not from that node.
    """
    wanted = set(numbers)
    if not wanted:
        return {}
    found = {message.metadata.reply_to_message_id: message for message in grid.pull_messages(wanted)}
    return {number: message for number, message in found.items() if number in wanted}
