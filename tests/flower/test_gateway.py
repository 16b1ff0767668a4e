"""What passes the gateway before a SuperLink, and what does not, over TLS, to a server of ours."""

import contextlib
import datetime
import hashlib
import http.client
import http.server
import socket
import ssl
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from tests.flower.certificates import make_certificates
from unpooled.engines.flower import gateway as module
from unpooled.engines.flower import listener
from unpooled.engines.flower.gateway import Gateway
from unpooled.engines.flower.keyring import KEY, SIGNATURE, TIME, Keyring, signed
from unpooled.engines.flower.processes import free_port

PULL = "/v1/fleet/pull-messages"


class Echo(http.server.BaseHTTPRequestHandler):
    """Answers with what it was sent, and keeps a list of it."""

    protocol_version = "HTTP/1.1"
    seen: list

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.seen.append((self.path, dict(self.headers), hashlib.sha256(body).hexdigest()))
        self.send_response(418 if self.path.endswith("/teapot") else 200)
        self.send_header("content-length", str(len(body)))
        self.send_header("x-theirs", "kept")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("keys"))


@contextlib.contextmanager
def echoing(certificates):
    """The server behind, over TLS; its port and what it has seen."""
    handler = type("Own", (Echo,), {"seen": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates.certificate, certificates.key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port, handler.seen
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def gateway(certificates):
    gateway = Gateway("127.0.0.1", 0, certificates)
    yield gateway
    gateway.stop()


@contextlib.contextmanager
def connected(gateway):
    context = ssl.create_default_context(cafile=gateway.tls.ca)
    with contextlib.closing(
        http.client.HTTPSConnection("127.0.0.1", gateway.port, timeout=60, context=context)
    ) as connection:
        yield connection


def asked(connection, path, method="POST", body=b"", headers=None):
    connection.request(method, path, body, headers or {})
    answer = connection.getresponse()
    return answer.status, answer.read(), answer.headers


def test_what_nodes_ask_passes_as_it_is(gateway, certificates):
    large = bytes(range(256)) * 2**16  # 16 MiB
    with echoing(certificates) as (port, seen), connected(gateway) as connection:
        gateway.start(f"127.0.0.1:{port}")
        status, body, headers = asked(connection, PULL, body=large, headers={"x-signed": "as it is"})
        assert (status, body, headers["x-theirs"]) == (200, large, "kept")
        pieces = (large[k : k + 2**20] for k in range(0, len(large), 2**20))
        more = {"content-length": str(len(large))}
        assert asked(connection, "/v1/fleet/teapot", body=pieces, headers=more)[:2] == (418, large)
        assert [path for path, _, _ in seen] == [PULL, "/v1/fleet/teapot"]
        assert seen[0][1]["x-signed"] == "as it is"
        assert {digest for _, _, digest in seen} == {hashlib.sha256(large).hexdigest()}


OTHERS = (
    "/",
    "/docs",
    "/health",
    "/v1/control/run",
    "/v1/runtime/push",
    "/v1/fleet",
    "/v1/fleet/",
    "/v1/fleet/a/b",
)
TRICKS = (
    "/v1/fleet/../control/run",
    "/v1/fleet/%2e%2e/control/run",
    "/v1/fleet/..%2fcontrol%2frun",
    "//v1/fleet/pull-messages",
    "/v1/fleet/pull-messages?run",
    "/V1/FLEET/pull-messages",
    "http://127.0.0.1/v1/control/run",
)


def test_nothing_else_does(gateway, certificates):
    with echoing(certificates) as (port, seen), connected(gateway) as connection:
        gateway.start(f"127.0.0.1:{port}")
        for path in (*OTHERS, *TRICKS):
            assert asked(connection, path)[0] == 404, path
        for method in ("GET", "PUT", "OPTIONS"):
            assert asked(connection, PULL, method)[0] == 404, method
        assert asked(connection, PULL)[0] == 200
        assert len(seen) == 1


def test_nodes_are_told_to_try_again_while_the_superlink_is_away(gateway):
    gateway.start(f"127.0.0.1:{free_port('127.0.0.1')}")
    with connected(gateway) as connection:
        assert asked(connection, PULL, body=b"x" * 100)[0] == 502


def test_who_stops_in_the_middle_is_not_waited_for(gateway, certificates, monkeypatch):
    monkeypatch.setattr(module, "SECONDS", 0.2)
    with echoing(certificates) as (port, _), connected(gateway) as connection:
        gateway.start(f"127.0.0.1:{port}")
        connection.putrequest("POST", PULL)
        connection.putheader("content-length", "100")
        connection.endheaders(b"ten bytes.")
        assert connection.getresponse().status == 502


def test_a_port_is_for_one(gateway):
    with pytest.raises(ConnectionRefusedError), connected(gateway) as connection:
        asked(connection, PULL)
    gateway.start(f"127.0.0.1:{free_port('127.0.0.1')}")
    with pytest.raises(OSError, match="in use"):
        Gateway("127.0.0.1", gateway.port, None)
    gateway.stop()
    Gateway("127.0.0.1", gateway.port, None).stop()


OWN, OTHER = ec.generate_private_key(ec.SECP384R1()), ec.generate_private_key(ec.SECP384R1())


def headers(key=OWN, seconds=0.0):
    """Those of a caller whose clock is so many seconds ahead."""
    return signed(key, datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds))


@pytest.fixture
def guarded(certificates):
    """A gateway at which one key is registered, and what reaches the server behind it."""
    keyring = Keyring()
    keyring.admit(OWN.public_key())
    gateway = Gateway("127.0.0.1", 0, certificates, keyring)
    with echoing(certificates) as (port, seen):
        gateway.start(f"127.0.0.1:{port}")
        yield gateway, seen
        gateway.stop()


STRANGERS = {
    "no key": (dict, "the header 'flwr-public-key' is missing"),
    "another key": (lambda: headers(OTHER), "this key is not registered"),
    "another's key": (lambda: headers(OTHER) | {KEY: headers()[KEY]}, "the signature does not fit the key"),
    "no signature": (lambda: headers() | {SIGNATURE: "?"}, "the signature does not fit the key"),
    "another time": (
        lambda: headers() | {TIME: headers(seconds=1)[TIME]},
        "the signature does not fit the key",
    ),
    "long ago": (lambda: headers(seconds=-400), "the signature is 400 s old: is a clock wrong?"),
    "a clock ahead": (lambda: headers(seconds=60), "the signature is -60 s old: is a clock wrong?"),
}


def test_a_key_is_asked_for_before_a_body_is_read(guarded):
    gateway, seen = guarded
    for name, (shown, words) in STRANGERS.items():
        with connected(gateway) as connection:
            connection.putrequest("POST", PULL)
            for header, value in {**shown(), "content-length": str(600 * 2**20)}.items():
                connection.putheader(header, value)
            connection.endheaders()  # and not a byte of the 600 MiB
            answer = connection.getresponse()
            assert (answer.status, answer.headers["date"] is None) == (401, False), name
            assert answer.read().decode() == f"{words}\n"
    assert seen == []


def test_a_body_is_not_larger_than_it_may_be(guarded, monkeypatch):
    gateway, seen = guarded
    monkeypatch.setattr(module, "MOST_BYTES", 2**20)
    whole = b"x" * 2**20
    with connected(gateway) as connection:
        assert asked(connection, PULL, body=whole, headers=headers())[0] == 200
    with connected(gateway) as connection:
        assert asked(connection, PULL, body=whole + b"x", headers=headers())[0] == 413
    with connected(gateway) as connection:
        connection.putrequest("POST", PULL)
        for header, value in {**headers(), "transfer-encoding": "chunked"}.items():
            connection.putheader(header, value)
        connection.endheaders()  # without an end in sight
        assert connection.getresponse().status == 413
    assert len(seen) == 1


def idle(gateway, count):
    return [socket.create_connection(("127.0.0.1", gateway.port), 30.0) for _ in range(count)]


def closed(strangers):
    """Wait until they were all hung up on."""
    for stranger in strangers:
        with contextlib.suppress(ConnectionResetError):
            assert stranger.recv(1) == b""
        stranger.close()


def test_strangers_who_say_nothing_make_room(guarded, monkeypatch):
    gateway, _ = guarded
    monkeypatch.setattr(listener, "MOST_FROM_ONE", 8)
    with connected(gateway) as connection:
        assert asked(connection, PULL, headers=headers())[0] == 200
        strangers = idle(gateway, 40)
        closed(strangers[:33])  # of eight, one has shown its key and stays
        assert asked(connection, PULL, headers=headers())[0] == 200
        with connected(gateway) as another:
            assert asked(another, PULL, headers=headers())[0] == 200
        for stranger in strangers[33:]:
            stranger.close()


def test_strangers_have_little_time(certificates, monkeypatch):
    """In which to shake hands, and to send headers."""
    monkeypatch.setattr(listener, "STRANGER_SECONDS", 3.0)  # a handshake takes its time on a busy machine
    monkeypatch.setattr(module, "SWEEP_SECONDS", 0.1)
    gateway = Gateway("127.0.0.1", 0, certificates)
    gateway.start("127.0.0.1:1")
    context = ssl.create_default_context(cafile=certificates.ca)
    [silent, slow] = idle(gateway, 2)
    slow = context.wrap_socket(slow, server_hostname="127.0.0.1")
    slow.sendall(b"POST /v1/fleet/pull-messages HTTP/1.1\r\n")
    closed([silent, slow])
    gateway.stop()


OUT_OF_FILES = """
import os, resource, sys
from unpooled.engines.flower.gateway import Gateway
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
gateway = Gateway("127.0.0.1", 0, None)
gateway.start("127.0.0.1:1")
files = []
try:
    while True:
        files.append(os.open(os.devnull, os.O_RDONLY))
except OSError:
    print(gateway.port, flush=True)
sys.stdin.readline()
for file in files:
    os.close(file)
print("room again", flush=True)
sys.stdin.readline()
"""


def test_a_process_that_can_open_no_more_files_goes_on_when_it_can():
    """And a crowd of strangers does not make it run out of them."""
    with subprocess.Popen(
        [sys.executable, "-c", OUT_OF_FILES],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as process:
        port = int(process.stdout.readline())
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", port), 30.0) as stranger:
                closed([stranger])
        process.stdin.write("\n")
        process.stdin.flush()
        process.stdout.readline()
        for crowd in (0, 400):  # idle connections, four for each file that it may open
            strangers = [socket.create_connection(("127.0.0.1", port), 30.0) for _ in range(crowd)]
            with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
                assert asked(connection, PULL)[0] == 502
        for stranger in strangers:
            stranger.close()
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stderr.read() == ""
