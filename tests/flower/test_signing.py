"""A signature binds a site, a question and an answer: none of them can be another one."""

import datetime
from types import SimpleNamespace

import numpy as np
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from flwr.app import ConfigRecord

from unpooled.engines.flower import signing
from unpooled.engines.flower.records import ARRAYS, SPEC, array_record, reply_record, request_record
from unpooled.engines.flower.signing import CERTIFICATE, Authority, ForgedError, Signatures, Signer, sign
from unpooled.engines.remote.messages import Reply, Request
from unpooled.study import certificates

BASEL, BERN = ec.generate_private_key(ec.SECP384R1()), ec.generate_private_key(ec.SECP384R1())
CHECK = Signatures({"basel": BASEL.public_key(), "bern": BERN.public_key()})
REQUEST = Request("ask", {"study": {"digest": "2718"}, 10: 0.1, 2: [float("nan")]}, {"w": np.arange(3.0)})
REPLY = Reply({"rows": 40}, {"gradient": np.array([0.1, -2.0]), "loss": np.array(0.7)})


def numbered(number):
    return SimpleNamespace(reply_to_message_id=number)


def answered(number="7", key=BERN, site="bern", request=REQUEST):
    """A site's reply to a message of some number, which comes to the coordinator as an answer to number 7."""
    record = sign(reply_record(REPLY, site), request_record(request), number, key)
    return SimpleNamespace(content=record, metadata=numbered("7"))


def test_what_a_site_has_signed_is_taken():
    CHECK.check("bern", REQUEST, answered())


def tampered(where, value):
    message = answered()
    is_array = where == ARRAYS
    message.content[where] = array_record({**REPLY.arrays, **value}) if is_array else ConfigRecord(value)
    return message


FORGED = {
    "by another site": lambda: answered(key=BASEL),
    "to another message": lambda: answered(number="6"),
    "to another question": lambda: answered(request=REQUEST._replace(arrays={"w": np.arange(1.0, 4.0)})),
    "in another study": lambda: answered(request=REQUEST._replace(spec={"study": {"digest": "3141"}})),
    "with another number": lambda: tampered(ARRAYS, {"loss": np.array(0.8)}),
    "with one more array": lambda: tampered(ARRAYS, {"more": np.array(0.8)}),
    "with other words": lambda: tampered(SPEC, dict(answered().content[SPEC]) | {"spec": "{}"}),
    "under another name": lambda: tampered(SPEC, dict(answered().content[SPEC]) | {"client": "basel"}),
    "without a signature": lambda: tampered(SPEC, {"client": "bern", "spec": "{}"}),
    "with nonsense for one": lambda: tampered(SPEC, dict(answered().content[SPEC]) | {"signature": "x"}),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_answer_is_refused_by_name(name):
    with pytest.raises(ForgedError, match="its answer is not signed by the key of bern"):
        CHECK.check("bern", REQUEST, FORGED[name]())


def test_a_site_without_a_key_is_refused():
    with pytest.raises(ForgedError, match="by the key of genf"):
        CHECK.check("genf", REQUEST, answered(site="genf"))


TOMORROW = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1)


def pem(certificate):
    return certificate.public_bytes(serialization.Encoding.PEM)


def coordinator(until=TOMORROW):
    """A study's authority as its sites have it, and the coordinator's key."""
    ca_key, key = ec.generate_private_key(ec.SECP384R1()), ec.generate_private_key(ec.SECP384R1())
    ca = certificates.authority("wards", ca_key, TOMORROW)
    own = certificates.server(("localhost",), key.public_key(), ca, ca_key, until)
    return Authority(pem(ca)), Signer(key, pem(own)), Signer(ca_key, pem(ca))


AUTHORITY, OURS, ROOT = coordinator()
_, THEIRS, _ = coordinator()


RUN = 2**64 - 3  # Flower draws 64 bits


def question(signer=OURS, site="bern", run=RUN, **more):
    record = Signatures({}, signer).record(REQUEST, site, run)
    record[SPEC].update(more)
    return record


def test_what_the_coordinator_has_signed_is_answered():
    AUTHORITY.check(question(), "bern", RUN)
    AUTHORITY.check(question(), "bern", RUN)  # it may come again
    record = sign(reply_record(REPLY, "bern"), question(), "7", BERN)
    CHECK.check("bern", REQUEST, SimpleNamespace(content=record, metadata=numbered("7")))


def with_other_arrays():
    record = question()
    record[ARRAYS] = array_record({"w": np.arange(1.0, 4.0)})
    return record


ASKED_BY_OTHERS = {
    "nobody": lambda: question(None),
    "the coordinator of another study": lambda: question(THEIRS),
    "another, under the coordinator's certificate": lambda: question(
        THEIRS._replace(certificate=OURS.certificate)
    ),
    "the authority itself, which is no server": lambda: question(ROOT),
    "another, with other words": lambda: question(kind="curve"),
    "another, with other points": with_other_arrays,
    "another, with words that nobody signs": lambda: question(more=b"x"),
    "another, who recorded a question to another site": lambda: question(site="basel"),
    "another, who recorded a question of another run": lambda: question(run=RUN - 1),
    "nonsense": lambda: question(**{CERTIFICATE: b"x"}),
    "nonsense of another type": lambda: question(**{CERTIFICATE: 7}),
}


@pytest.mark.parametrize("who", ASKED_BY_OTHERS)
def test_a_question_of_others_is_refused(who):
    words = "a question that the coordinator's key has not signed for bern in this run"
    with pytest.raises(ForgedError, match=words):
        AUTHORITY.check(ASKED_BY_OTHERS[who](), "bern", RUN)


def test_a_certificate_has_its_days(monkeypatch):
    yesterday = TOMORROW - datetime.timedelta(days=2)
    authority, signer, _ = coordinator(yesterday)
    with pytest.raises(ForgedError, match=f"valid from .* to {yesterday:%d %B %Y} only"):
        authority.check(question(signer), "bern", RUN)

    class Later(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return TOMORROW + datetime.timedelta(hours=1)

    AUTHORITY.check(question(), "bern", RUN)
    monkeypatch.setattr(signing.datetime, "datetime", Later)  # while the site is there
    with pytest.raises(ForgedError, match=f"to {TOMORROW:%d %B %Y} only"):
        AUTHORITY.check(question(), "bern", RUN)
