"""Requests and replies as bytes: what is read is what was written, or an error."""

import io

import numpy as np
import pytest

from unpooled.remote import packing
from unpooled.remote.messages import Request
from unpooled.whole_file import DAMAGE

ARRAYS = {"h": np.arange(3.0), "clients": np.array([1, 2])}


def test_what_is_written_is_read():
    request = packing.request_from(packing.request_bytes(Request("train", {"round": 3, "x": [1.5]}, ARRAYS)))
    assert (request.kind, request.spec) == ("train", {"round": 3, "x": [1.5]})
    assert request.arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(request.arrays[name], array, strict=True)


def test_no_flipped_bit_goes_unnoticed():
    file = io.BytesIO()
    packing.write(file, {"round": 3}, ARRAYS)
    piece, damaged = file.getvalue(), 0
    for flip in range(8 * len(piece)):
        byte, bit = divmod(flip, 8)
        try:
            about, arrays = packing.read(
                io.BytesIO(piece[:byte] + bytes([piece[byte] ^ 1 << bit]) + piece[byte + 1 :])
            )
        except DAMAGE:
            damaged += 1
            continue
        assert about == {"round": 3}
        assert arrays.keys() == ARRAYS.keys()
        assert all(np.array_equal(arrays[name], ARRAYS[name]) for name in ARRAYS)
    assert damaged > len(piece)


def test_nothing_that_could_run_code_is_read():
    file = io.BytesIO()
    np.savez(file, about=np.array([object()], dtype=object))
    with pytest.raises(DAMAGE):
        packing.read(io.BytesIO(file.getvalue()))
