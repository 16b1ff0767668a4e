"""Who calls a SuperLink: what a caller signs, and how the signature is held against the registered keys.

Every request to Flower's Fleet interface has three headers: a public key, the time, and the time signed by
the private key. So a gateway knows a caller before it reads a byte of the body.
"""

from __future__ import annotations

import base64
import binascii
import datetime
from collections.abc import Iterable

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

KEY, TIME, SIGNATURE = "flwr-public-key", "flwr-timestamp", "flwr-signature"
AHEAD, BEHIND = 5.0, 305.0  # seconds by which a caller's clock may differ: those of Flower's SuperLink
CLOCK = "is a clock wrong?"
SCHEME = ec.ECDSA(hashes.SHA256())


def pem(key: ec.EllipticCurvePublicKey) -> bytes:
    """A public key as it is sent."""
    return key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def read_public(text: bytes) -> ec.EllipticCurvePublicKey:
    """A public key from OpenSSH's format, as ``unpooled study keys`` and ``ssh-keygen`` write it."""
    key = serialization.load_ssh_public_key(text)
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise ValueError("it is not a key on an elliptic curve")
    return key


def signed(key: ec.EllipticCurvePrivateKey, now: datetime.datetime) -> dict[str, str]:
    """The headers of one request."""
    time = now.isoformat()
    signature = key.sign(time.encode(), SCHEME)
    known = base64.b64encode(pem(key.public_key())).decode()
    return {KEY: known, TIME: time, SIGNATURE: base64.b64encode(signature).decode()}


class Keyring:
    """The public keys that may call."""

    def __init__(self) -> None:
        self._keys: dict[bytes, ec.EllipticCurvePublicKey] = {}

    def admit(self, key: ec.EllipticCurvePublicKey) -> None:
        """Let the holder of the private key in."""
        self._keys[pem(key)] = key

    def refusal(self, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """Why the caller with these headers is not let in; empty where it is."""
        given = {name.decode("latin-1").lower(): value for name, value in headers}
        try:
            key, time, signature = (given[name] for name in (KEY, TIME, SIGNATURE))
            known = self._keys.get(base64.b64decode(key, validate=True))
            if known is None:
                return "this key is not registered"
            known.verify(base64.b64decode(signature, validate=True), time, SCHEME)
            signed_at = datetime.datetime.fromisoformat(time.decode())
            age = (datetime.datetime.now(datetime.UTC) - signed_at).total_seconds()
        except KeyError as missing:
            return f"the header {missing} is missing"
        except (InvalidSignature, ValueError, TypeError, binascii.Error):
            return "the signature does not fit the key"
        if not -AHEAD < age < BEHIND:
            return f"the signature is {age:.0f} s old: {CLOCK}"
        return ""
