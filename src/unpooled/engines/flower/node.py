"""A site at a SuperLink, in this process: take messages, let a client server answer them, send the replies.

Flower's own SuperNode runs, for each message, the app that the SuperLink hands it: code of the coordinator's
choice, in a new process that listens on loopback. Here no app is fetched, no process is started and no port
is opened: a message is data for the library that is installed at the site, and nothing else. Anything other
than one of its requests is refused.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Self

from unpooled.engines.flower.environment import app, module
from unpooled.engines.flower.fleet import TRIES, Fleet, FleetError, RefusedError
from unpooled.engines.flower.records import NotOursError, reply_record, request_of
from unpooled.engines.flower.roster import HELLO
from unpooled.engines.flower.signing import Authority, ForgedError, sign
from unpooled.engines.remote.messages import Answers, Reply
from unpooled.engines.retry import Retry

HEARTBEAT = 20.0  # seconds; the SuperLink counts a node as gone after twice as long
BEATS = 4  # sent in that time
FIRST_PAUSE, LONGEST_PAUSE, LONGER = 0.1, 1.0, 1.3  # seconds between two polls for a message
RAISED = 2  # Flower's code for a message that could not be answered
PIECE_TRIES = 300  # for a piece of a message that is on its way from the server app to the SuperLink
MOST_BYTES = 2**30  # of a message

Say = Callable[[str], None]
log = logging.getLogger("unpooled.runs.flower")


class Node:
    """Takes part while it is entered; enter it again after a lost connection.

    Parameters
    ----------
    fleet : the way to the SuperLink, with the site's key.
    name : the site's id.
    server : answers the requests.
    authority : knows the coordinator's questions; None answers anyone who can reach the SuperLink, which then
        takes any key: the site registers its own first.
    say : told what was refused.
    """

    def __init__(self, fleet: Fleet, name: str, server: Answers, authority: Authority | None, say: Say):
        self.fleet, self.name, self.server, self.authority, self.say = fleet, name, server, authority, say
        self._proto = module("flwr.proto.fleet_pb2")
        self._messages = module("flwr.proto.message_pb2")
        self._node = module("flwr.proto.node_pb2").Node()
        self._public = module("flwr.supercore.primitives.asymmetric").public_key_to_bytes(
            fleet.key.public_key()
        )
        self._over = threading.Event()
        self._pause = FIRST_PAUSE
        self._run = 0  # that of the last message

    def __enter__(self) -> Self:
        proto = self._proto
        with contextlib.suppress(RefusedError):  # a SuperLink that was started anew does not know it
            self._leave()
        if self.authority is None:
            request = proto.RegisterNodeFleetRequest(public_key=self._public)
            self.fleet.call("register-node", request, proto.RegisterNodeFleetResponse())
        request = proto.ActivateNodeRequest(public_key=self._public, heartbeat_interval=HEARTBEAT)
        self._node.node_id = self.fleet.call("activate-node", request, proto.ActivateNodeResponse()).node_id
        self._over = threading.Event()
        threading.Thread(target=self._beat, args=(self._over,), daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Leave, so that nobody waits for this site."""
        self._over.set()
        with contextlib.suppress(FleetError):
            self._leave()
            self._node.node_id = 0

    def _leave(self) -> None:
        """Give up the place at the SuperLink, if there is one: it does not give it twice."""
        proto, number = self._proto, self._node.node_id
        if number:
            request = proto.DeactivateNodeRequest(node_id=number)
            self.fleet.call("deactivate-node", request, proto.DeactivateNodeResponse())
            if self.authority is None:
                request = proto.UnregisterNodeFleetRequest(node_id=number)
                self.fleet.call("unregister-node", request, proto.UnregisterNodeFleetResponse())

    def step(self) -> None:
        """Answer one message; where there is none, pause."""
        request = self._proto.PullMessagesRequest(node=self._node)
        found = self.fleet.call("pull-messages", request, self._proto.PullMessagesResponse())
        if not found.messages_list:
            time.sleep(self._pause)
            self._pause = min(LONGER * self._pause, LONGEST_PAUSE)
            return
        self._pause = FIRST_PAUSE
        try:
            message = module("flwr.common.serde").message_from_proto(found.messages_list[0])  # bare
            self._run = message.metadata.run_id
            self._send(self._answered(message, found.message_object_trees[0]))
        except RefusedError as error:
            if error.is_stranger:
                raise
            log.warning("a message is not answered: %s", error)  # its run may have ended meanwhile
        except FleetError:
            raise
        except Exception as error:  # no SuperLink sends such a thing, and it must not end a site
            log.exception("a message is not answered")
            self.say(f"refused: a message that cannot be read or answered ({type(error).__name__})")

    def linger(self, seconds: float) -> None:
        """Stay until the last run is over, at most this long: the replies of a node that leaves are lost."""
        with contextlib.suppress(FleetError):  # the run is over
            for _ in Retry(seconds=seconds, pause=LONGEST_PAUSE / 2):
                self._told(self._run)

    def _answered(self, message: Any, tree: Any) -> Any:
        """The reply to a message whose pieces ``tree`` names; an error says why there is none."""
        try:
            content = self._content(message.metadata.run_id, tree)
            request = request_of(content)
            if self.authority is not None and request.kind != HELLO.kind:
                self.authority.check(content, self.name, message.metadata.run_id)
        except FleetError:
            raise
        except Exception as error:  # whatever it is, it is not a request that is answered here
            log.warning("refused: %r", error)
            words = f"refused: {self._app(message.metadata.run_id)} sent {_in_words(error)}"
            self.say(words)
            return app().Message(app().Error(RAISED, words), reply_to=message)
        reply = Reply({}, {}) if request.kind == HELLO.kind else self.server.handle(request)
        record = reply_record(reply, self.name)
        if self.authority is not None:
            record = sign(record, content, message.metadata.message_id, self.fleet.key)
        return app().Message(record, reply_to=message)

    def _content(self, run: int, tree: Any) -> Any:
        """The records of a message."""
        inflatable = module("flwr.supercore.inflatable.inflatable_object")
        inflate = module("flwr.supercore.inflatable.inflatable_utils").inflate_object_from_contents
        pieces: dict[str, bytes] = {}
        size = 0
        for piece in inflatable.iterate_object_tree(tree):
            if piece.object_id not in pieces:
                pieces[piece.object_id] = self._piece(run, piece.object_id)
                size += len(pieces[piece.object_id])
            if size > MOST_BYTES:
                raise ValueError(f"a message of more than {MOST_BYTES} bytes")
        request = self._messages.ConfirmMessageReceivedRequest(
            node=self._node, run_id=run, message_object_id=tree.object_id
        )
        answer = self._messages.ConfirmMessageReceivedResponse()
        self.fleet.call("confirm-message-received", request, answer, TRIES)
        return inflate(tree.object_id, pieces).content

    def _piece(self, run: int, number: str) -> bytes:
        """A piece of a message, once the SuperLink has it."""
        request = self._messages.PullObjectRequest(node=self._node, run_id=run, object_id=number)
        for _ in Retry(tries=PIECE_TRIES, pause=FIRST_PAUSE):
            found = self.fleet.call("pull-object", request, self._messages.PullObjectResponse(), TRIES)
            if not found.object_found:
                break
            if found.object_available:
                return bytes(found.object_content)
        raise RefusedError(f"{self.fleet.address} has lost a piece of its message")

    def _app(self, run: int) -> str:
        """What the coordinator says that it runs, in words."""
        with contextlib.suppress(FleetError):
            told = self._told(run)
            return f"the app {told.fab_id!r} of version {told.fab_version!r}"
        return "an app"

    def _told(self, run: int) -> Any:
        """What the coordinator says of a run that is under way."""
        runs = module("flwr.proto.run_pb2")
        request = runs.GetRunRequest(node=self._node, run_id=run)
        return self.fleet.call("get-run", request, runs.GetRunResponse()).run

    def _send(self, message: Any) -> None:
        inflatable = module("flwr.supercore.inflatable.inflatable_object")
        message.metadata.__dict__["_message_id"] = message.object_id
        bare = (
            module("flwr.app.message").remove_content_from_message(message)
            if message.has_content()
            else message
        )
        with inflatable.no_object_id_recompute():
            request = self._proto.PushMessagesRequest(
                node=self._node,
                messages_list=[module("flwr.common.serde").message_to_proto(bare)],
                message_object_trees=[inflatable.get_object_tree(message)],
            )
            told = self.fleet.call("push-messages", request, self._proto.PushMessagesResponse(), TRIES)
            pieces = inflatable.get_all_nested_objects(message)
            for number in set(told.objects_to_push) & set(pieces):
                request = self._messages.PushObjectRequest(
                    node=self._node,
                    run_id=message.metadata.run_id,
                    object_id=number,
                    object_content=pieces[number].deflate(),
                    session_id=told.session_id,
                )
                self.fleet.call("push-object", request, self._messages.PushObjectResponse(), TRIES)

    def _beat(self, over: threading.Event) -> None:
        """Send heartbeats to the SuperLink, also while the client server computes."""
        beats = module("flwr.proto.heartbeat_pb2")
        request = beats.SendNodeHeartbeatRequest(node=self._node, heartbeat_interval=HEARTBEAT)
        while not over.wait(HEARTBEAT / BEATS):
            with contextlib.suppress(FleetError):  # the poll for messages fails too, and reports it
                self.fleet.call("send-node-heartbeat", request, beats.SendNodeHeartbeatResponse())


def _in_words(error: Exception) -> str:
    """What was refused, and why."""
    if isinstance(error, ForgedError):
        return f"{error}: someone else who can reach its SuperLink may have asked"
    why = str(error) if isinstance(error, NotOursError) else type(error).__name__
    return f"what is no request of unpooled's ({why}): no code and no app of the coordinator's runs at a site"
