"""Requests and replies as bytes: what is read is what was written, or an error."""

import io
import tracemalloc
import zipfile

import numpy as np
import pytest

from unpooled._files import DAMAGE
from unpooled.engines.remote import packing
from unpooled.engines.remote.messages import Request
from unpooled.runs import runfile

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


def bomb(names, header=None, **options):
    """A small zip file of large members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", **options) as archive:
        for name in names:
            piece = io.BytesIO()
            np.lib.format.write_array_header_1_0(
                piece, {"descr": "<f8", "fortran_order": False, "shape": header or (1 << 20,)}
            )
            archive.writestr(name, piece.getvalue() + (b"" if header else bytes(8 << 20)))
    return file.getvalue()


def test_a_bomb_is_refused_before_it_is_unpacked():
    """Neither what packs a thousand times its size nor what claims to be large gets any room."""
    packed = bomb(["about.npy"], compression=zipfile.ZIP_DEFLATED)
    assert len(packed) < 1 << 14
    claims = bomb(["about.npy"], header=(1 << 50,))
    for piece, words in ((packed, "is packed"), (claims, "is no array of")):
        tracemalloc.start()
        with pytest.raises(ValueError, match=words):
            packing.read(io.BytesIO(piece))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 1 << 20


def test_a_run_file_has_a_size_limit(tmp_path):
    (tmp_path / "bomb.run").write_bytes(
        bomb([f"state/{i}.npy" for i in range(20)], compression=zipfile.ZIP_DEFLATED)
    )
    with pytest.raises(ValueError, match=r"bomb.run .*it would unpack to 0\.156 GiB, and 0\.1 is the most"):
        runfile.load(tmp_path / "bomb.run", most_bytes=int(0.1 * 2**30))
    (tmp_path / "claims.run").write_bytes(bomb(["run.json", "w.npy"], header=(1 << 50,)))
    with pytest.raises(ValueError, match=r"claims.run is not a run saved by unpooled"):
        runfile.load(tmp_path / "claims.run")
