"""Requests over a real Grid, that of Flower's simulation: who answers, who does not, who is refused."""

import time
from types import SimpleNamespace

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from flwr.app import Error
from flwr.serverapp import ServerApp

from tests.flower.simulation import simulated
from unpooled.engines.flower import transport
from unpooled.engines.flower.client import answering
from unpooled.engines.flower.records import reply_record
from unpooled.engines.flower.signing import Signatures
from unpooled.engines.flower.transport import GridTransport
from unpooled.engines.remote.failures import DuplicateClientError
from unpooled.engines.remote.messages import Failure, Reply, Request

KEY = ec.generate_private_key(ec.SECP384R1()).public_key()
NAMES = ("b", "a", "c", "twin", "d", "twin")


class Site:
    """Answers with what it was sent; fails, sleeps and crashes as it is told."""

    def __init__(self, name):
        self.name = name

    def state(self):
        return {}, {}

    def restore(self, spec, arrays):
        assert spec == {}

    def handle(self, request):
        if self.name in request.spec.get("fail", ()):
            raise ValueError(f"{self.name} has no column 'age'")
        if self.name in request.spec.get("sleep", ()):
            time.sleep(request.spec["seconds"])
        return Reply({"kind": request.kind, "name": self.name}, {"x": request.arrays["x"] * 2})


def name_of(context):
    return NAMES[context.node_config["partition-id"]]


def ask(names, kind="ask", **spec):
    return {name: Request(kind, spec, {"x": np.array(0.1)}) for name in names}


def replies(answers):
    return [name for name, answer in answers.items() if isinstance(answer, Reply)]


@pytest.fixture(scope="module")
def seen():
    """What a server app saw, in one simulation."""
    seen = {}

    def main(grid, context):
        transport = GridTransport(grid, timeout=120.0, hello_seconds=120.0)
        while len(list(grid.get_node_ids())) < len(NAMES):
            time.sleep(0.05)
        try:
            transport.holders()
        except DuplicateClientError as error:
            seen["twins"] = str(error)
        names = ["a", "b", "c"]
        seen["all"] = transport.exchange(ask(names))
        seen["train"] = transport.exchange(ask(["c"], "train"))
        signing = GridTransport(grid, timeout=120.0, signatures=Signatures(dict.fromkeys(names, KEY)))
        signing.roster = transport.roster
        seen["unsigned"] = signing.exchange(ask(names))
        seen["one fails"] = transport.exchange(ask(names, fail=["b"]))
        told = seen["told"] = []
        quick = GridTransport(
            grid, quorum=2, grace=0.5, return_seconds=0.0, tell=lambda event, data: told.append((event, data))
        )
        quick.roster = transport.roster
        seen["straggler"] = quick.exchange(ask(names, sleep=["c"], seconds=8.0))
        seen["absent"] = quick.exchange(ask(["a", "nobody"]))
        hasty = GridTransport(grid, timeout=1.0)
        hasty.roster = transport.roster
        seen["too late"] = hasty.exchange(ask(["d"], sleep=["d"], seconds=6.0))

    server = ServerApp()
    server.main()(main)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transport, "SLOW_SECONDS", 0.0)
        simulated(server, answering(lambda context: Site(name_of(context)), name_of), len(NAMES))
    return seen


def test_everyone_answers_by_client_id_in_the_order_asked(seen):
    assert list(seen["all"]) == ["a", "b", "c"]
    for name, reply in seen["all"].items():
        assert reply.spec == {"kind": "ask", "name": name}
        assert reply.arrays["x"] == 0.2
        assert reply.arrays["x"].shape == ()
    assert seen["train"]["c"].spec == {"kind": "train", "name": "c"}


def test_two_nodes_with_one_id_are_refused_by_name(seen):
    assert "2 nodes say that they are 'twin'" in seen["twins"]


def test_who_fails_says_why_and_the_others_count(seen):
    assert replies(seen["one fails"]) == ["a", "c"]
    assert seen["one fails"]["b"] == Failure("ValueError: b has no column 'age'")


def test_a_quorum_does_not_wait_for_a_straggler(seen):
    assert replies(seen["straggler"]) == ["a", "b"]
    assert "did not answer within" in seen["straggler"]["c"].reason
    event, data = seen["told"][0]
    assert event == "waiting"
    assert "c" in data["sites"]


def test_who_is_not_there_or_too_late_is_a_failure(seen):
    assert replies(seen["absent"]) == ["a"]
    assert "is not connected" in seen["absent"]["nobody"].reason
    assert seen["too late"]["d"] == Failure("did not answer within 1 s")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"timeout": -1}, "timeout must be"),
        ({"quorum": 0}, "quorum must be"),
        ({"grace": float("nan")}, "grace"),
    ],
)
def test_bad_options_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        GridTransport(None, **options)


def test_an_answer_without_the_signature_of_its_site_does_not_count(seen):
    for name in ("a", "b", "c"):
        words = f"its answer is not signed by the key of {name}: someone else may have sent it"
        assert seen["unsigned"][name] == Failure(words)


def test_who_was_cut_off_in_the_middle_of_a_reply_has_time_to_come_back(monkeypatch):
    """Flower waits three minutes for the rest of such a reply; the site joins again as another node."""
    clock, asked = [0.0], []

    def post(grid, requests, seconds, record):
        asked.extend(requests)
        return {str(node): node for node in requests}

    def pull(grid, numbers):
        [number] = numbers
        if number == "8":
            content = reply_record(Reply({"name": "a"}, {}), "a")
            return {number: SimpleNamespace(has_error=lambda: False, content=content)}
        clock[0] += 180.0
        error = Error(code=transport.UNAVAILABLE[0])
        return {number: SimpleNamespace(has_error=lambda: True, error=error)}

    def here():
        nodes = [7] if clock[0] < 180.0 else [8] if clock[0] > 200.0 else []
        return [SimpleNamespace(node_id=node, name="a", last_activated_at=str(node)) for node in nodes]

    monkeypatch.setattr(transport, "post", post)
    monkeypatch.setattr(transport, "pull", lambda grid, numbers: pull(grid, numbers) if numbers else {})
    monkeypatch.setattr(transport.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(transport.time, "sleep", lambda seconds: clock.__setitem__(0, clock[0] + seconds))
    carrier = GridTransport(SimpleNamespace(get_nodes=here), timeout=300.0, return_seconds=120.0)
    assert carrier.exchange(ask(["a"])) == {"a": Reply({"name": "a"}, {})}
    assert asked == [7, 8]
