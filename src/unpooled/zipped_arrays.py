"""NumPy arrays in files and messages, looked at before they are unpacked: what is too large is refused."""

from __future__ import annotations

import io
import math
import zipfile
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from unpooled.arrays import Array

MOST_BYTES = 16 * 2**30  # of all that is in a file, unpacked
HEADER = 65536  # bytes that the description of an array may take


def check_size(archive: zipfile.ZipFile, most_bytes: int = MOST_BYTES, *, packed: bool = True) -> None:
    """Refuse a file that says of itself that it is larger than so many bytes, or packed where it must not be.

    No more bytes are read of a member than it says of itself.
    """
    total = sum(member.file_size for member in archive.infolist())
    if total > most_bytes:
        raise ValueError(
            f"it would unpack to {total / 2**30:.3g} GiB, and {most_bytes / 2**30:.3g} is the most"
        )
    if not packed and any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
        raise ValueError("a member of it is packed, which none that unpooled writes is")


def read_array(archive: zipfile.ZipFile, name: str) -> Array:
    """An array, for which no more room is made than the member has bytes."""
    with archive.open(name) as member:
        check_header(member, archive.getinfo(name).file_size, name)
    with archive.open(name) as member:
        return np.asarray(npy.read_array(member, allow_pickle=False, max_header_size=HEADER))


def array_of(data: bytes, name: str) -> Array:
    """The same for an array in the bytes of a ``.npy`` file."""
    check_header(io.BytesIO(data), len(data), name)
    return np.asarray(npy.read_array(io.BytesIO(data), allow_pickle=False, max_header_size=HEADER))


def check_header(file: IO[bytes], n_bytes: int, name: str) -> None:
    """Refuse an array that claims more than so many bytes, or that would have to be unpickled."""
    version = npy.read_magic(file)
    read: Any = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read(file, max_header_size=HEADER)
    if dtype.hasobject or math.prod(shape) * dtype.itemsize > n_bytes:
        raise ValueError(f"{name} is no array of {n_bytes} bytes")
