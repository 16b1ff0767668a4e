"""Every question to a site and what leaves as its answer, one JSON line each, on disk before it is sent.

Only the owner of the file can read it.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
from pathlib import Path
from typing import IO, Any

import numpy as np

from unpooled._files import plain
from unpooled.engines.remote.messages import Reply, Request
from unpooled.engines.remote.specs import hashed
from unpooled.kernels.arrays import Arrays
from unpooled.study.envelope import SPEC


class Audit:
    """A file that grows by a line for each reply; ``values`` writes the numbers themselves too.

    A link in its place is not followed.
    """

    def __init__(self, path: Path, study: str, site: str, *, values: bool = False):
        self.path, self.study, self.site, self.values = path, study, site, values
        self._agreed: Any = None
        with self._open():  # a file that cannot be written is found now, not later
            pass

    def write(self, number: int, request: Request, reply: Reply) -> None:
        """Append what was asked and what is about to leave, and wait until it is on disk."""
        line = {
            "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
            "study": self.study,
            "site": self.site,
            "answer": number,
            "kind": request.kind,
            "asked": self._asked(request),
            "said": plain(reply.spec),
            "arrays": described(reply.arrays, values=self.values),
            "bytes": sum(np.asarray(array).nbytes for array in reply.arrays.values()),
            "digest": digest(reply),
        }
        with self._open() as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _asked(self, request: Request) -> dict[str, Any]:
        """The question; what the sites have agreed on only where it is new."""
        around = dict(request.spec.get(SPEC, {}))
        agreed, self._agreed = self._agreed, around.get("agreement", self._agreed)
        if agreed == self._agreed:
            around.pop("agreement", None)
        spec = {**request.spec, SPEC: around} if around else request.spec
        return {"said": plain(spec), "arrays": described(request.arrays, values=self.values)}

    def _open(self) -> IO[str]:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        number = os.open(self.path, flags, 0o600)
        if hasattr(os, "fchmod"):
            os.fchmod(number, 0o600)
        return open(number, "a", encoding="utf-8")


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
