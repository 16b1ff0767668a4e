"""A node whose coordinator sends what no SuperLink sends."""

import math
from types import SimpleNamespace

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from flwr.proto.fleet_pb2 import PullMessagesResponse
from flwr.proto.message_pb2 import Message, Metadata, ObjectTree

from unpooled.engines.flower.fleet import RefusedError
from unpooled.engines.flower.node import Node

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
