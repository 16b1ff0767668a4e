"""The only way from outside to a SuperLink: what SuperNodes ask of it passes, everything else is refused.

Flower serves three interfaces on one port: Fleet for SuperNodes, which show registered keys; Runtime for the
processes it starts; and Control for ``flwr run`` and ``flwr supernode register``, which takes anyone who can
reach the port. Whoever does could admit a key of his own, or run code of his own at every site. So the
SuperLink listens on loopback, and this is what listens on the address that sites know.

A caller shows its key in the headers, and is refused before a byte of the body is read. Connections, the time
until a key is shown and the size of a body are limited (see ``listener``).
"""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any

import httpx
import uvicorn

from unpooled.engines.flower.keyring import Keyring
from unpooled.engines.flower.listener import BACKLOG, Listener
from unpooled.engines.retry import Retry

if TYPE_CHECKING:
    from unpooled.engines.flower.superlink import Certificates

FLEET = re.compile(rb"/v1/fleet/[a-z-]+")  # as it was sent: no "..", "%2e" or "//" that another might resolve
BETWEEN = set(b"connection date expect host keep-alive te trailer transfer-encoding upgrade".split())
SECONDS = 60.0  # without a word from the SuperLink or the SuperNode, which itself gives up after 30
MOST_BYTES = 64 * 2**20  # of a body: Flower sends arrays in pieces of 5 MiB
KEPT_SECONDS = 3.0  # that an idle connection to the SuperLink is used again; it closes them after 5
LEAVE_SECONDS = 1  # for requests that are under way at the end
SWEEP_SECONDS = 1.0  # between two checks of deadlines
PAUSE = 0.02

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
log = logging.getLogger("unpooled.runs.flower")


class Gateway:
    """Takes ``host:port`` at once, a free port for 0; listens, and passes on, from ``start`` to ``stop``.

    Before that, connections are refused. Were they kept waiting, all that a node has to ask would be answered
    at one moment, and Flower's nodes may hang where two of their threads are refused at once. With a
    ``keyring`` only those pass whose key is on it.
    """

    def __init__(self, host: str, port: int, tls: Certificates | None, keyring: Keyring | None = None):
        self._listener = Listener(host, port)
        self.port, self.tls, self.keyring = int(self._listener.getsockname()[1]), tls, keyring
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    def start(self, superlink: str) -> None:
        """Pass on to ``superlink``, host:port, in a thread that ends with this process."""
        passing = Passing(superlink, self.tls, self.keyring, self._listener)
        config = uvicorn.Config(
            passing,
            ssl_certfile=None if self.tls is None else self.tls.certificate,
            ssl_keyfile=None if self.tls is None else self.tls.key,
            http="h11",  # which bounds the size of headers
            backlog=BACKLOG,
            lifespan="off",
            ws="none",
            log_config=None,
            log_level="critical",  # what strangers send is not shown on the terminal
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=True,  # by which a site sees that its clock is wrong
            timeout_graceful_shutdown=LEAVE_SECONDS,
        )
        config.load()  # in this thread, so that a certificate that cannot be read is this caller's error
        self._server = server = uvicorn.Server(config)

        async def serve() -> None:
            asyncio.get_running_loop().set_exception_handler(_log)
            sweeping = asyncio.create_task(_sweep(self._listener))
            async with passing.client:
                await server.serve(sockets=[self._listener])
            sweeping.cancel()

        self._thread = thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
        thread.start()
        for _ in Retry(pause=PAUSE):
            if server.started or not thread.is_alive():
                break
        if not server.started:
            raise RuntimeError(f"the gateway at port {self.port} did not start")

    def stop(self) -> None:
        """Stop listening. Stopping twice is fine."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join(10.0 * LEAVE_SECONDS)
        self._listener.close()


class Passing:
    """An ASGI application: a request to the Fleet interface is the SuperLink's to answer."""

    def __init__(self, superlink: str, tls: Certificates | None, keyring: Keyring | None, listener: Listener):
        self.keyring, self.listener = keyring, listener
        trust = ssl.create_default_context(cafile=tls.ca) if tls is not None else False
        self.client = httpx.AsyncClient(
            base_url=f"{'http' if tls is None else 'https'}://{superlink}",
            verify=trust,
            trust_env=False,  # a proxy of the environment is not for loopback
            timeout=SECONDS,
            limits=httpx.Limits(keepalive_expiry=KEPT_SECONDS),
        )

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request. Bodies pass piece by piece, headers as they are."""
        path: bytes = scope["raw_path"]
        if scope["method"] != "POST" or not FLEET.fullmatch(path) or scope["query_string"]:
            log.info("refused %s %r from %s", scope["method"], path[:100], scope["client"])
            return await _answer(send, 404, b"only SuperNodes are served here\n")
        if self.keyring is not None and (refusal := self.keyring.refusal(scope["headers"])):
            log.info("refused %r from %s: %s", path[:100], scope["client"], refusal)
            return await _answer(send, 401, f"{refusal}\n".encode())
        if not 0 <= _length(scope["headers"]) <= MOST_BYTES:
            return await _answer(
                send, 413, f"a body has at most {MOST_BYTES} bytes, and says how many\n".encode()
            )
        self.listener.busy(scope["client"])
        try:
            await self._pass(path.decode("ascii"), scope["headers"], receive, send)
        finally:
            self.listener.idle(scope["client"])

    async def _pass(
        self, path: str, headers: list[tuple[bytes, bytes]], receive: Receive, send: Send
    ) -> None:
        asked = self.client.build_request("POST", path, headers=_passed(headers), content=_body(receive))
        try:
            answer = await self.client.send(asked, stream=True)
        except httpx.TransportError as error:  # SuperNodes try again after this one
            log.info("%s could not be passed on: %r", path, error)
            return await _answer(send, 502, b"it could not be passed on\n")
        try:
            own = _passed(answer.headers.raw)
            await send({"type": "http.response.start", "status": answer.status_code, "headers": own})
            async for piece in answer.aiter_raw():
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            await answer.aclose()


async def _answer(send: Send, status: int, words: bytes) -> None:
    headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(words)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": words})


async def _body(receive: Receive) -> AsyncIterator[bytes]:
    more = True
    while more:
        try:
            message = await asyncio.wait_for(receive(), SECONDS)
        except TimeoutError:
            raise httpx.ReadTimeout("the SuperNode has stopped sending") from None
        if message["type"] == "http.disconnect":
            raise httpx.ReadError("the SuperNode has gone")
        yield message.get("body", b"")
        more = message.get("more_body", False)


def _passed(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Those of the request or answer itself, without those of one connection."""
    return [(name, value) for name, value in headers if name.lower() not in BETWEEN]


def _length(headers: list[tuple[bytes, bytes]]) -> int:
    """The size that a request says it has; -1 where it does not say."""
    return max((int(value) for name, value in headers if name == b"content-length"), default=-1)


async def _sweep(listener: Listener) -> None:
    while True:
        await asyncio.sleep(SWEEP_SECONDS)
        listener.sweep()


def _log(loop: asyncio.AbstractEventLoop, what: dict[str, Any]) -> None:
    """What goes wrong with a single connection is logged, not shown on the terminal."""
    log.info("%s: %r", what.get("message"), what.get("exception"))
