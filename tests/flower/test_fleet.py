"""A site's calls to a coordinator that answers wrongly, endlessly or not at all."""

import contextlib
import http.server
import threading

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from flwr.proto.fleet_pb2 import ActivateNodeRequest, ActivateNodeResponse

from unpooled.engines.flower import fleet
from unpooled.engines.flower.fleet import ClockError, Fleet, RefusedError, UnreachableError

OWN = ec.generate_private_key(ec.SECP384R1())
GOOD = ActivateNodeResponse(node_id=7).SerializeToString()


@contextlib.contextmanager
def answering(*answers):
    """Calls to a server that gives one answer after the other, each a status and a body or pieces of one.

    A third part of an answer is its date.
    """
    left = list(answers)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            status, body, *dates = left.pop(0)
            if dates:
                self.date_time_string = lambda: dates[0]
            self.send_response(status)
            self.end_headers()
            with contextlib.suppress(OSError):  # the caller has hung up
                for piece in [body] if isinstance(body, bytes) else body:
                    self.wfile.write(piece)

        def log_message(self, *words):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            with Fleet(f"127.0.0.1:{server.server_port}", None, OWN) as calls:

                def call(tries=1):
                    return calls.call("activate-node", ActivateNodeRequest(), ActivateNodeResponse(), tries)

                yield call
        finally:
            server.shutdown()
            thread.join()
    assert left == []


def test_an_answer_is_read():
    with answering((200, GOOD)) as call:
        assert call().node_id == 7


def test_an_answer_without_an_end_is_not_read_to_it(monkeypatch):
    monkeypatch.setattr(fleet, "MOST_BYTES", 2**20)
    endless = iter(lambda: b"x" * 2**16, b"")
    with answering((200, endless), (403, endless)) as call:
        with pytest.raises(RefusedError, match="answers activate-node with more than 1048576 bytes"):
            call()
        with pytest.raises(RefusedError, match=r"refuses activate-node: 403 x{1000}$"):
            call()


def test_an_answer_that_is_none_of_flowers_is_refused():
    words = "answers activate-node with what cannot be read"
    with answering((200, b"<html>")) as call, pytest.raises(RefusedError, match=words):
        call()


def test_what_a_stranger_says_does_not_reach_the_terminal_as_it_is():
    with answering((403, b"\x1b[2Jgo\x07 away\r\n")) as call:
        with pytest.raises(RefusedError, match=r"refuses activate-node: 403 \[2Jgo  away$") as error:
            call()
        assert error.value.is_stranger


def test_a_coordinator_that_is_away_is_called_again():
    with answering((502, b""), (503, b""), (200, GOOD), (504, b"no")) as call:
        assert call(tries=3).node_id == 7
        with pytest.raises(UnreachableError, match="504 no"):
            call()


UNREADABLE = (
    "",
    "x",
    "yesterday at noon",
    "Mon, 99 Foo 2026 99:99:99 GMT",
    "Thu, 01 Jan 99999999999 00:00:00 GMT",
)


@pytest.mark.parametrize("date", [*UNREADABLE, "Thu, 01 Jan 2026 00:00:00 -0000"])
def test_a_date_that_cannot_be_read_is_none(date):
    """Nor one of a zone that nobody knows."""
    with answering((401, b"who are you", date)) as call:
        with pytest.raises(RefusedError, match="refuses activate-node: 401 who are you") as error:
            call()
        assert error.value.is_stranger


def test_a_date_that_can_be_read_names_a_wrong_clock():
    words = r"this machine's clock is \d+ s ahead of"
    answer = (401, b"who are you", "Thu, 01 Jan 2026 00:00:00 GMT")
    with answering(answer) as call, pytest.raises(ClockError, match=words):
        call()
