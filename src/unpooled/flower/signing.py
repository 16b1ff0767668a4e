"""A site's signature under an answer, and its check at the coordinator.

What is signed: the site's id, the message that it answers (its number, and all that it asks), and all that
the answer says. So nobody else can answer for a site, and no answer can be used for another question.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec

from unpooled.flower.keyring import SCHEME
from unpooled.flower.records import ARRAYS, SPEC, request_record
from unpooled.remote.messages import Holder, Request

SIGNATURE = "signature"


class ForgedError(ValueError):
    """An answer that its site has not signed."""


def sign(record: Any, asked: Any, number: str, key: ec.EllipticCurvePrivateKey) -> Any:
    """The record of a reply, signed, to the message of this number with the record ``asked``."""
    record[SPEC][SIGNATURE] = key.sign(_statement(record, asked, number), SCHEME)
    return record


class Signatures:
    """Checks answers by the public keys of the sites."""

    def __init__(self, keys: Mapping[Holder, ec.EllipticCurvePublicKey]):
        self.keys = dict(keys)

    def check(self, site: Holder, request: Request, message: Any) -> None:
        """Refuse a reply to ``request`` that the site has not signed."""
        record = message.content
        try:
            asked = _statement(record, request_record(request), message.metadata.reply_to_message_id)
            self.keys[site].verify(record[SPEC][SIGNATURE], asked, SCHEME)
        except (InvalidSignature, KeyError, TypeError, ValueError):
            raise ForgedError(
                f"its answer is not signed by the key of {site}: someone else may have sent it"
            ) from None


def _statement(reply: Any, asked: Any, number: str) -> bytes:
    return json.dumps(["unpooled answer", number, _digest(asked), _digest(reply)]).encode()


def _digest(record: Any) -> str:
    """A fingerprint of what a record says, the site's id included, but for its signature."""
    head = {name: value for name, value in record[SPEC].items() if name != SIGNATURE}
    total = hashlib.sha256(json.dumps(head, sort_keys=True).encode())
    for name, array in sorted(record[ARRAYS].items()):
        total.update(json.dumps([name, array.dtype, array.shape, len(array.data)]).encode())
        total.update(array.data)
    return total.hexdigest()
