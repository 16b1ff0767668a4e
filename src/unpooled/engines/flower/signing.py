"""Signatures under questions and answers: the coordinator's under the one, the site's under the other.

A site answers a question if a certificate of the study's authority goes with it and its key has signed all
that is asked, whom, and in which run. So nobody else at the coordinator's machine, where Flower's port takes
orders from anyone, can ask, nor send a recorded question to another site or in a run of their own. The same
question may come again within its run; its answer tells nothing new.

Under an answer is signed: the site's id, the message that it answers (its number, and all that it asks), and
all that the answer says. So nobody can answer for a site, and no answer does for another question.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec

from unpooled.engines.flower.keyring import SCHEME
from unpooled.engines.flower.records import ARRAYS, SPEC, request_record
from unpooled.engines.remote.messages import Holder, Request

SIGNATURE, CERTIFICATE = "signature", "certificate"  # in a record, and signed by nobody


class ForgedError(ValueError):
    """A question or an answer that is not signed by whom it should be."""


class Signer(NamedTuple):
    """The coordinator's key, with the certificate by which sites know it."""

    key: ec.EllipticCurvePrivateKey
    certificate: bytes  # PEM

    def sign(self, record: Any, site: Holder, run: int) -> Any:
        """The record of a question to a site in a run of Flower's, signed."""
        record[SPEC][SIGNATURE] = self.key.sign(_question(record, site, run), SCHEME)
        record[SPEC][CERTIFICATE] = self.certificate
        return record


class Authority:
    """Knows the coordinator's questions by the study's authority, whose certificate a site has."""

    def __init__(self, certificate: bytes):
        self.certificate = x509.load_pem_x509_certificate(certificate)
        self._known: tuple[bytes, ec.EllipticCurvePublicKey] | None = None
        self._dates: tuple[datetime.datetime, datetime.datetime]

    def check(self, record: Any, site: Holder, run: int) -> None:
        """Refuse a question that the coordinator has not signed, or not for this site and this run."""
        try:
            head = record[SPEC]
            self._key(head[CERTIFICATE]).verify(head[SIGNATURE], _question(record, site, run), SCHEME)
        except (InvalidSignature, x509.ExtensionNotFound, KeyError, TypeError, ValueError):
            raise ForgedError(
                f"a question that the coordinator's key has not signed for {site} in this run"
            ) from None
        first, last = self._dates
        if not first <= datetime.datetime.now(datetime.UTC) <= last:
            raise ForgedError(
                f"a question under a certificate that is valid from {first:%d %B %Y} to {last:%d %B %Y} only"
            )

    def _key(self, certificate: bytes) -> ec.EllipticCurvePublicKey:
        """The key of a certificate that the authority has signed for a server."""
        if self._known is None or self._known[0] != certificate:
            own = x509.load_pem_x509_certificate(certificate)
            own.verify_directly_issued_by(self.certificate)
            uses = own.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
            key = own.public_key()
            if x509.oid.ExtendedKeyUsageOID.SERVER_AUTH not in uses:
                raise ValueError("it is not a server's")
            if not isinstance(key, ec.EllipticCurvePublicKey):
                raise ValueError("it is not a key on an elliptic curve")
            self._known = certificate, key
            self._dates = own.not_valid_before_utc, own.not_valid_after_utc
        return self._known[1]


def sign(record: Any, asked: Any, number: str, key: ec.EllipticCurvePrivateKey) -> Any:
    """The record of a reply, signed, to the message of this number with the record ``asked``."""
    record[SPEC][SIGNATURE] = key.sign(_answer(record, asked, number), SCHEME)
    return record


class Signatures:
    """Signs questions with the coordinator's key, and checks answers by the public keys of the sites."""

    def __init__(self, keys: Mapping[Holder, ec.EllipticCurvePublicKey], signer: Signer | None = None):
        self.keys, self.signer = dict(keys), signer

    def record(self, request: Request, site: Holder, run: int) -> Any:
        """The record of a request to a site in a run, signed where there is a key to sign with."""
        record = request_record(request)
        return record if self.signer is None else self.signer.sign(record, site, run)

    def check(self, site: Holder, request: Request, message: Any) -> None:
        """Refuse a reply to ``request`` that the site has not signed."""
        record = message.content
        try:
            said = _answer(record, request_record(request), message.metadata.reply_to_message_id)
            self.keys[site].verify(record[SPEC][SIGNATURE], said, SCHEME)
        except (InvalidSignature, KeyError, TypeError, ValueError):
            raise ForgedError(
                f"its answer is not signed by the key of {site}: someone else may have sent it"
            ) from None


def _question(record: Any, site: Holder, run: int) -> bytes:
    return json.dumps(["unpooled question", site, run, _digest(record)]).encode()


def _answer(reply: Any, asked: Any, number: str) -> bytes:
    return json.dumps(["unpooled answer", number, _digest(asked), _digest(reply)]).encode()


def _digest(record: Any) -> str:
    """A fingerprint of what a record says, a site's id included, but for signatures."""
    head = {name: value for name, value in record[SPEC].items() if name not in (SIGNATURE, CERTIFICATE)}
    total = hashlib.sha256(json.dumps(head, sort_keys=True).encode())
    for name, array in sorted(record[ARRAYS].items()):
        total.update(json.dumps([name, array.dtype, array.shape, len(array.data)]).encode())
        total.update(array.data)
    return total.hexdigest()
