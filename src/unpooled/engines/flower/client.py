"""The client app: what runs at a site when a message comes.

    app = client_app(load)          # load(context) gives the site's rows, and they stay where it is called

Flower starts a new process for each message, so rows are loaded each time: let ``load`` read something quick,
such as a memory-mapped file. In a simulation a process lives on and keeps its last client servers. What
clients remember from round to round is in Flower's context, which outlives the process.
"""

from __future__ import annotations

import collections
import json
import logging
import traceback
from collections.abc import Callable
from typing import Any, Protocol

from unpooled.engines.flower.environment import app as flwr_app
from unpooled.engines.flower.environment import clientapp
from unpooled.engines.flower.records import array_record, arrays_of, reply_record, request_of
from unpooled.engines.flower.roster import HELLO
from unpooled.engines.remote.messages import Answers, Reply
from unpooled.kernels.arrays import Arrays

MEMORY, MEMORY_ARRAYS = "unpooled.memory", "unpooled.memory.arrays"
RAISED = 2  # Flower's code for an exception in a client app
MOST_KEPT = 2000  # client servers that a process keeps, where it outlives a message
KEPT: collections.OrderedDict[tuple[int, str], Resumable] = collections.OrderedDict()

log = logging.getLogger("unpooled.flower")


class Resumable(Answers, Protocol):
    """Answers a site's requests, and can be opened anew between two of them: a ``ClientServer``."""

    def state(self) -> tuple[dict[str, Any], Arrays]:
        """What one opened anew needs back."""

    def restore(self, spec: dict[str, Any], arrays: Arrays) -> None:
        """Take back what ``state`` returned."""


Open = Callable[[Any], Resumable]
"""From the context that Flower gives to a client app to what answers its requests."""

Name = Callable[[Any], str]
"""From that context to the node's client id."""

Load = Callable[[Any], Any]
"""From that context to the node's rows."""


def client_id(context: Any) -> str:
    """The node's client id: ``client-id`` of its node config; in a simulation, its partition's number."""
    config = context.node_config
    if "client-id" in config:
        return str(config["client-id"])
    if "partition-id" in config:
        return f"{int(config['partition-id']):06d}"
    raise ValueError(f"the node config must have client-id, got {dict(config)!r}")


class Handler:
    """Answers one message. A class, so that what a process keeps is not pickled with it."""

    def __init__(self, open: Open, name: Name):
        self.open, self.name = open, name

    def __call__(self, message: Any, context: Any) -> Any:
        """The reply to a message. An error goes out in words; the site's own log has the traceback."""
        try:
            name, request = self.name(context), request_of(message.content)
            reply = Reply({}, {})
            if request.kind != HELLO.kind:
                server = self._server(context.run_id, name, context)
                if MEMORY in context.state:
                    server.restore(*memory_of(context.state))
                reply = server.handle(request)
                keep_memory(context.state, *server.state())
            return flwr_app().Message(reply_record(reply, name), reply_to=message)
        except Exception as error:
            log.error("a request could not be answered:\n%s", traceback.format_exc())
            reason = f"{type(error).__name__}: {error}"
            return flwr_app().Message(flwr_app().Error(RAISED, reason), reply_to=message)

    def _server(self, run: int, name: str, context: Any) -> Resumable:
        if (run, name) not in KEPT:
            KEPT[run, name] = self.open(context)
            while len(KEPT) > MOST_KEPT:
                KEPT.popitem(last=False)
        return KEPT[run, name]


def answering(open: Open, name: Name = client_id) -> Any:
    """A ClientApp whose requests are answered by what ``open`` makes of the node's context.

    ``name`` finds the client id in the context.
    """
    app, handler = clientapp().ClientApp(), Handler(open, name)
    for kind in (app.query, app.train, app.evaluate):
        kind()(handler)
    return app


def client_app(load: Load, *, name: Name = client_id, threads: int | None = None) -> Any:
    """A ClientApp that answers from the rows that ``load(context)`` gives, and never sends them.

    Parameters
    ----------
    load : gives a FederatedData with the node's clients, or one client's ``(X, y)`` or
        ``(X, y, sample_weight)``, whose id is then the node's. ``context.node_config`` has what the node was
        started with.
    name : finds the node's client id in the context.
    threads : as in ``engines.Local``.
    """
    return answering(Opening(load, name, threads), name)


class Opening:
    """From a context to a client server with its rows."""

    def __init__(self, load: Load, name: Name, threads: int | None):
        self.load, self.name, self.threads = load, name, threads

    def __call__(self, context: Any) -> Resumable:
        """The client server."""
        from unpooled.data.federated import FederatedData
        from unpooled.engines.remote.client_server import ClientServer

        rows = self.load(context)
        if not isinstance(rows, FederatedData):
            rows = FederatedData.from_clients({self.name(context): rows})
        return ClientServer(rows, threads=self.threads)


def keep_memory(state: Any, spec: dict[str, Any], arrays: Arrays) -> None:
    """Put what clients remember into the state of Flower's context."""
    state[MEMORY] = flwr_app().ConfigRecord({"spec": json.dumps(spec)})
    state[MEMORY_ARRAYS] = array_record(arrays)


def memory_of(state: Any) -> tuple[dict[str, Any], Arrays]:
    """What clients remember, from the state of Flower's context."""
    return json.loads(state[MEMORY]["spec"]), arrays_of(state[MEMORY_ARRAYS])
