"""Files and what is in them: written whole or not at all, arrays checked before they are unpacked."""

from __future__ import annotations

import contextlib
import errno
import io
import math
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

MOST_BYTES = 16 * 2**30  # of all that is in a file, unpacked
HEADER = 65536  # bytes that the description of an array may take
# what zipfile, NumPy and json raise where a file is not what it was
DAMAGE = (zipfile.BadZipFile, zlib.error, KeyError, TypeError, ValueError, EOFError, RuntimeError, OSError)

_BINARY = getattr(os, "O_BINARY", 0)  # Windows would change the ends of lines


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file beside ``path`` to write to; it takes its place once it is complete and on disk.

    Whatever has the name of the file beside it is deleted first: a link is not followed.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path.parent))
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.unlink(missing_ok=True)
        number = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o666)
        with os.fdopen(number, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


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


def read_array(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    """An array, for which no more room is made than the member has bytes."""
    with archive.open(name) as member:
        check_header(member, archive.getinfo(name).file_size, name)
    with archive.open(name) as member:
        return np.asarray(npy.read_array(member, allow_pickle=False, max_header_size=HEADER))


def array_of(data: bytes, name: str) -> NDArray[Any]:
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


def plain(value: Any) -> Any:
    """As JSON has it, so that what is read back from a file compares equal."""
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value
