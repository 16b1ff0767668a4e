"""Files that are there whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import contextlib
import errno
import os
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

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
