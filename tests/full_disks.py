"""Disks that are full when some files are written."""

import contextlib
import errno
import os
from pathlib import Path
from unittest import mock


@contextlib.contextmanager
def full(is_full):
    """Let the operating system say that there is no space left for the files of which ``is_full(path)``."""
    real = os.fsync

    def fsync(number):
        if is_full(Path(os.readlink(f"/proc/self/fd/{number}"))):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(number)

    with mock.patch.object(os, "fsync", fsync):
        yield
