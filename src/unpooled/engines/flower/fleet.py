"""Flower's Fleet interface as a site calls it: protobuf over HTTP, each request signed by the site's key.

Every call ends: with an answer, or after ``SECONDS`` without a byte in one of the errors below. A proxy of
the environment (HTTPS_PROXY, NO_PROXY) is used, except for loopback. Beside the messages of ``flwr.app`` this
module and ``node`` use what Flower's own SuperNode uses below them, which is why the extra pins its versions.
"""

from __future__ import annotations

import datetime
import email.utils
import re
import ssl
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import httpx
from cryptography.hazmat.primitives.asymmetric import ec

from unpooled.engines.flower.environment import is_loopback, module
from unpooled.engines.flower.keyring import AHEAD, BEHIND, CLOCK, signed
from unpooled.engines.retry import Retry

SECONDS, CONNECT_SECONDS = 30.0, 10.0  # without a byte; to connect and to shake hands
KEPT_SECONDS = 3.0  # that an idle connection is used again; the coordinator closes them after 5
MOST_BYTES = 64 * 2**20  # of an answer: Flower sends arrays in pieces of 5 MiB
MOST_WORDS = 1000  # bytes of a refusal that are read
TRIES = 3  # of calls that may be repeated
AWAY = (502, 503, 504)  # a gateway's answer for a SuperLink that does not answer
PROTOBUF = "application/protobuf"


class FleetError(Exception):
    """A call failed; the message is for whoever runs the site."""


class UnreachableError(FleetError):
    """Nobody answers, or not in time; it may help to try again."""


class UntrustedError(FleetError):
    """Whoever answers has no certificate of the study's authority."""


class RefusedError(FleetError):
    """The coordinator refuses the call. ``is_stranger``: because it does not know this site."""

    def __init__(self, words: str, status: int = 0):
        super().__init__(words)
        self.is_stranger = status in (401, 403)


class ClockError(FleetError):
    """The coordinator refuses this machine's signatures because of its clock."""


class Fleet:
    """Calls to the SuperLink at ``address``.

    Parameters
    ----------
    address : ``host:port``.
    ca : the authority that signed its certificate; None for a connection without TLS.
    key : the site's private key, which signs every request.
    """

    def __init__(self, address: str, ca: Path | None, key: ec.EllipticCurvePrivateKey):
        self.address, self.key = address, key
        host = urllib.parse.urlsplit(f"//{address}").hostname or ""
        self._is_direct = is_loopback(host)
        try:
            self._client = httpx.Client(
                base_url=f"{'http' if ca is None else 'https'}://{address}/v1/fleet/",
                verify=False if ca is None else ssl.create_default_context(cafile=ca),
                trust_env=not self._is_direct,
                timeout=httpx.Timeout(SECONDS, connect=CONNECT_SECONDS),
                limits=httpx.Limits(keepalive_expiry=KEPT_SECONDS),
                headers={"accept": PROTOBUF, "content-type": PROTOBUF, "accept-encoding": "identity"},
            )
        except (ImportError, ValueError) as error:  # a proxy of a kind that httpx cannot take
            raise UntrustedError(f"{self._proxy()}cannot be used: {error}") from None
        versions = module("flwr.supercore.runtime_version_compatibility").RuntimeVersionMetadata
        self._versions = dict(versions.from_local_component("SuperNode").as_metadata())

    def call(self, name: str, request: Any, answer: Any, tries: int = 1) -> Any:
        """Send ``request`` to a call such as "activate-node"; fill the message ``answer`` and return it."""
        body = request.SerializeToString(deterministic=True)
        for attempt in Retry(tries=tries):
            try:
                answer.ParseFromString(b"".join(self._sent(name, body)))
                return answer
            except UnreachableError:
                if attempt.is_last:
                    raise
            except module("google.protobuf.message").DecodeError:
                raise RefusedError(f"{self.address} answers {name} with what cannot be read") from None
        raise AssertionError("the last attempt returns or raises")

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _sent(self, name: str, body: bytes) -> Iterator[bytes]:
        """The pieces of an answer."""
        headers = {**self._versions, **signed(self.key, now())}
        try:
            with self._client.stream("POST", name, content=body, headers=headers) as answer:
                if answer.status_code != httpx.codes.OK:
                    raise self._refusal(name, answer)
                size = 0
                for piece in answer.iter_raw():
                    size += len(piece)
                    if size > MOST_BYTES:
                        raise RefusedError(f"{self.address} answers {name} with more than {MOST_BYTES} bytes")
                    yield piece
        except httpx.ProxyError as error:
            raise UnreachableError(f"{self._proxy()}does not connect to {self.address}: {error}") from None
        except httpx.TransportError as error:
            if isinstance(_root(error), ssl.SSLCertVerificationError):
                raise UntrustedError(f"{self.address}: {_root(error)}") from None
            raise UnreachableError(
                f"{self._proxy()}{self.address}: {error or type(error).__name__}"
            ) from None

    def _refusal(self, name: str, answer: httpx.Response) -> FleetError:
        """What an answer other than "OK" means."""
        words = b""
        for piece in answer.iter_raw():
            words += piece
            if len(words) > MOST_WORDS:
                break
        words = words[:MOST_WORDS]
        said = re.sub(r"[^ -~]+", " ", words.decode("latin-1")).strip()
        if answer.status_code in AWAY:
            return UnreachableError(f"{self.address}: {answer.status_code} {said}")
        then = _date(answer.headers.get("date", ""))
        if answer.status_code == httpx.codes.UNAUTHORIZED and then is not None:
            ahead = (now() - then).total_seconds()
            if CLOCK in said or not -BEHIND < ahead < AHEAD:
                way = "ahead of" if ahead > 0 else "behind"
                return ClockError(
                    f"this machine's clock is {abs(ahead):.0f} s {way} the clock of {self.address}, which "
                    f"takes {AHEAD:g} s ahead and {BEHIND:g} s behind at most: set the clock, and join again"
                )
        return RefusedError(f"{self.address} refuses {name}: {answer.status_code} {said}", answer.status_code)

    def _proxy(self) -> str:
        """The proxy on the way, without its password, as the beginning of a sentence."""
        known = {} if self._is_direct else urllib.request.getproxies()
        name = next((name for name in ("https", "all") if name in known), None)
        if name is None or urllib.request.proxy_bypass(self.address):
            return ""
        parts = urllib.parse.urlsplit(known[name])
        port = f":{parts.port}" if parts.port else ""
        return f"the proxy {parts.scheme}://{parts.hostname}{port} ({name.upper()}_PROXY) "


def now() -> datetime.datetime:
    """The time by this machine's clock."""
    return datetime.datetime.now(datetime.UTC)


def _date(header: str) -> datetime.datetime | None:
    """When an answer was given, by the clock of whoever gave it; None where that cannot be read."""
    try:
        then = email.utils.parsedate_to_datetime(header)
    except (ValueError, OverflowError):
        return None
    return then if then.tzinfo is not None else None


def _root(error: BaseException) -> BaseException:
    """What an error comes from."""
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__ or error
    return error
