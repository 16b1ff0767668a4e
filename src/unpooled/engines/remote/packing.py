"""Requests and replies as bytes: what JSON can hold, and named arrays; nothing that could run code."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any, BinaryIO

import numpy as np

from unpooled._files import check_size, plain, read_array
from unpooled.engines.remote.messages import Reply, Request
from unpooled.kernels.arrays import Arrays

ABOUT, ARRAY = "about", "array/"


def write(file: BinaryIO, about: Any, arrays: Arrays) -> None:
    """Plain data and arrays in one piece, which says which arrays it has."""
    text = json.dumps([plain(about), sorted(arrays)])
    members: dict[str, Any] = {ABOUT: np.frombuffer(text.encode(), dtype=np.uint8)}
    members |= {f"{ARRAY}{name}": array for name, array in arrays.items()}
    np.savez(file, **members)


def read(file: BinaryIO) -> tuple[Any, Arrays]:
    """The data and the arrays. A damaged piece raises one of ``whole_file.DAMAGE``."""
    with zipfile.ZipFile(file) as archive:
        check_size(archive, packed=False)
        about, names = json.loads(read_array(archive, f"{ABOUT}.npy").tobytes())
        return about, {name: read_array(archive, f"{ARRAY}{name}.npy") for name in names}


def request_bytes(request: Request) -> bytes:
    """A request."""
    return _bytes([request.kind, request.spec], request.arrays)


def request_from(piece: bytes) -> Request:
    """A request read back."""
    (kind, spec), arrays = read(io.BytesIO(piece))
    return Request(kind, spec, arrays)


def reply_bytes(reply: Reply) -> bytes:
    """A reply."""
    return _bytes(reply.spec, reply.arrays)


def reply_from(piece: bytes) -> Reply:
    """A reply read back."""
    return Reply(*read(io.BytesIO(piece)))


def _bytes(about: Any, arrays: Arrays) -> bytes:
    buffer = io.BytesIO()
    write(buffer, about, arrays)
    return buffer.getvalue()
