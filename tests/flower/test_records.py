"""What is sent is what arrives, bit for bit."""

import io
import math

import numpy as np
import pytest
from flwr.app import ArrayRecord, ConfigRecord, RecordDict
from numpy.lib import format as npy

from unpooled.engines.flower.records import NotOursError, reply_of, reply_record, request_of, request_record
from unpooled.engines.remote.messages import Reply, Request

ARRAYS = {
    "float64": np.array([0.1, -0.0, np.nan, np.inf, 5e-324]),
    "float32": np.arange(6, dtype=np.float32).reshape(2, 3) / 3,
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "counts": np.array([2**63 - 1, -1]),
    "unsigned": np.array([2**64 - 1], np.uint64),
    "flags": np.array([[True], [False]]),
    "number": np.array(1 / 3),
    "nothing": np.empty((0, 4)),
    "words": np.array(["Ærø", ""]),
    "strided": np.arange(10.0)[::3],
}


def assert_same(got, sent):
    assert list(got) == list(sent)
    for name, array in sent.items():
        assert got[name].dtype == array.dtype
        assert got[name].shape == array.shape
        assert got[name].tobytes() == array.tobytes()


def test_a_request_arrives_as_it_was_sent():
    spec = {
        "round": 3,
        "names": ["a", "b"],
        "lam": 0.1 + 0.2,
        "ball": math.inf,
        "none": None,
        "deep": {"x": [1.5]},
    }
    got = request_of(request_record(Request("train", spec, ARRAYS)))
    assert got.kind == "train"
    assert got.spec == spec
    assert_same(got.arrays, ARRAYS)


def test_a_reply_names_its_client():
    client, got = reply_of(reply_record(Reply({"rows": 7}, ARRAYS), "clinic Ø"))
    assert client == "clinic Ø"
    assert got.spec == {"rows": 7}
    assert_same(got.arrays, ARRAYS)


def test_objects_are_not_sent():
    with pytest.raises(ValueError, match="allow_pickle"):
        request_record(Request("ask", {}, {"x": np.array([object()])}))


def test_the_records_of_another_app_are_refused():
    other = RecordDict({"config": ConfigRecord({"lr": 0.1}), "arrays": ArrayRecord()})
    with pytest.raises(NotOursError, match=r"\['arrays', 'config'\]"):
        request_of(other)


def test_what_claims_to_be_large_gets_no_room():
    """Neither an array of 8 PB in 128 bytes, nor JSON that is nested without end: both are refused."""
    header = io.BytesIO()
    npy.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (1 << 50,)})
    record = reply_record(Reply({}, {"gram": np.ones(3)}), "bern")
    record["unpooled.arrays"]["gram"].data = header.getvalue()
    with pytest.raises(ValueError, match="gram is no array of 128 bytes"):
        reply_of(record)
    record = reply_record(Reply({}, {}), "bern")
    record["unpooled.spec"]["spec"] = 100_000 * "["
    with pytest.raises(NotOursError, match="nested too deeply"):
        reply_of(record)
