"""Requests and replies as bytes: what JSON can hold, and named arrays; nothing that could run code."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from typing import Any

import numpy as np

from unpooled.arrays import Arrays
from unpooled.remote.messages import Reply, Request
from unpooled.settings import plain

ABOUT, ARRAY = "about", "array/"
DAMAGED = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)
"""What reading a damaged piece raises."""


def packed(about: Any, arrays: Arrays) -> bytes:
    """Plain data and arrays in one piece."""
    members: dict[str, Any] = {ABOUT: np.frombuffer(json.dumps(plain(about)).encode(), dtype=np.uint8)}
    members |= {f"{ARRAY}{name}": array for name, array in arrays.items()}
    buffer = io.BytesIO()
    np.savez(buffer, **members)
    return buffer.getvalue()


def unpacked(piece: bytes) -> tuple[Any, Arrays]:
    """The data and the arrays."""
    with np.load(io.BytesIO(piece), allow_pickle=False) as file:
        arrays = {name.removeprefix(ARRAY): file[name] for name in file.files if name != ABOUT}
        return json.loads(file[ABOUT].tobytes()), arrays


def request_bytes(request: Request) -> bytes:
    """A request."""
    return packed([request.kind, request.spec], request.arrays)


def request_from(piece: bytes) -> Request:
    """A request read back."""
    (kind, spec), arrays = unpacked(piece)
    return Request(kind, spec, arrays)


def reply_bytes(reply: Reply) -> bytes:
    """A reply."""
    return packed(reply.spec, reply.arrays)


def reply_from(piece: bytes) -> Reply:
    """A reply read back."""
    spec, arrays = unpacked(piece)
    return Reply(spec, arrays)
