"""What passes the gateway before a SuperLink, and what does not, over TLS, to a server of ours."""

import contextlib
import hashlib
import http.client
import http.server
import ssl
import threading

import pytest

from tests.flower.certificates import make_certificates
from unpooled.flower import gateway as module
from unpooled.flower.gateway import Gateway
from unpooled.flower.ports import free_port

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
