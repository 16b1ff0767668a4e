"""Every statistic that leaves a site, one JSON line each, on disk before it is sent.

Only the owner of the file can read it.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from unpooled.arrays import Arrays
from unpooled.remote.messages import Reply
from unpooled.remote.specs import hashed
from unpooled.settings import plain


class Audit:
    """A file that grows by a line for each reply; ``values`` writes the numbers themselves too."""

    def __init__(self, path: Path, study: str, site: str, *, values: bool = False):
        self.path, self.study, self.site, self.values = path, study, site, values
        with self._opened() as file:  # a file that cannot be written is found now, not later
            if hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), 0o600)  # it may be an old one

    def write(self, number: int, kind: str, reply: Reply) -> None:
        """Append what is about to leave and wait until it is on disk."""
        line = {
            "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
            "study": self.study,
            "site": self.site,
            "answer": number,
            "kind": kind,
            "said": plain(reply.spec),
            "arrays": described(reply.arrays, values=self.values),
            "bytes": sum(np.asarray(array).nbytes for array in reply.arrays.values()),
            "digest": digest(reply),
        }
        with self._opened() as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _opened(self) -> TextIO:
        number = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        return os.fdopen(number, "a", encoding="utf-8")


def described(arrays: Arrays, *, values: bool = False) -> list[dict[str, Any]]:
    """Name, shape and type of each array; perhaps its numbers."""
    found = []
    for name, array in arrays.items():
        each: dict[str, Any] = {"name": name, "shape": list(np.shape(array)), "dtype": str(array.dtype)}
        found.append(each | ({"values": np.asarray(array).tolist()} if values else {}))
    return found


def digest(reply: Reply) -> str:
    """A fingerprint of a reply, so that what was received can be held against what was logged."""
    return hashed(hashlib.sha256(), plain(reply.spec), reply.arrays)
