"""A node whose coordinator sends what no SuperLink sends."""

import math
from types import SimpleNamespace

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from flwr import app
from flwr.proto.fleet_pb2 import PullMessagesResponse
from flwr.proto.message_pb2 import Message, Metadata, ObjectTree

from tests.flower.test_signing import AUTHORITY, RUN, question
from unpooled.engines.flower.fleet import RefusedError
from unpooled.engines.flower.node import Node
from unpooled.engines.remote.messages import Reply

BAD = {
    "a message without a tree": PullMessagesResponse(
        messages_list=[Message(metadata=Metadata(run_id=1, message_type="query"))]
    ),
    "an empty message": PullMessagesResponse(messages_list=[Message()], message_object_trees=[ObjectTree()]),
    "numbers that are none": PullMessagesResponse(
        messages_list=[Message(metadata=Metadata(message_type="query", ttl=math.nan, created_at=math.inf))],
        message_object_trees=[ObjectTree(object_id="x")],
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_a_message_that_cannot_be_read_is_refused(what):
    """The site goes on."""

    def call(name, request, answer, tries=1):
        if name != "pull-messages":
            raise RefusedError("there is no such thing")
        return BAD[what]

    fleet = SimpleNamespace(call=call, key=ec.generate_private_key(ec.SECP384R1()), address="here:1")
    said = []
    node = Node(fleet, "bern", None, None, said.append)
    node.step()
    node.step()
    assert len(said) == 2
    assert all("refused: a message that cannot be read or answered (" in each for each in said)


class Desk:
    """Counts what reaches it."""

    asked = 0

    def handle(self, request):
        self.asked += 1
        return Reply({}, {})


@pytest.mark.parametrize(
    ("site", "run", "is_answered"),
    [("bern", RUN, True), ("basel", RUN, False), ("bern", RUN - 1, False)],
)
def test_a_recorded_question_is_answered_by_its_site_in_its_run_only(monkeypatch, site, run, is_answered):
    """Whoever has recorded what was signed for Bern sends it to a site in a run."""

    def call(name, request, answer, tries=1):
        raise RefusedError("there is no such thing")

    fleet = SimpleNamespace(call=call, key=ec.generate_private_key(ec.SECP384R1()), address="here:1")
    said, desk = [], Desk()
    node = Node(fleet, site, desk, AUTHORITY, said.append)
    monkeypatch.setattr(node, "_content", lambda run, tree: question())
    metadata = app.Metadata(run, "7", 1, 7, "", "", 0.0, 60.0, "query")
    message = app.Message(metadata=metadata, content=question())
    reply = node._answered(message, None)
    assert reply.has_content() == is_answered
    assert desk.asked == is_answered
    assert any("has not signed for" in words for words in said) != is_answered
