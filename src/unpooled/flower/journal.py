"""Replies kept on disk, so that a coordinator that was killed goes on where it stood.

A holder's answer depends on the request and on its rows alone (see ``remote.desk``), and whoever is started
again with the same settings asks the same. So replies are filed under a digest of holder and request: what
was answered before is read, the rest is asked, and the result has the bits of an uninterrupted run. Only what
the rows are ("describe") is asked anew each time, and must be what it was.
"""

from __future__ import annotations

import json
import logging
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from unpooled.remote.messages import Failure, Holder, Reply, Request, Transport
from unpooled.remote.specs import key_of

ALWAYS_ASKED = "describe"
MEMBER = "reply.json"

log = logging.getLogger("unpooled.flower")


class Journal:
    """A transport that remembers. ``folder`` is made where it is not there; empty it to start anew."""

    def __init__(self, through: Transport, folder: Path):
        self.through, self.folder = through, Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.read = 0  # replies that were not asked for again

    def holders(self) -> tuple[Holder, ...]:
        """Everyone who can be asked now, sorted."""
        return self.through.holders()

    def exchange(self, requests: Mapping[Holder, Request]) -> dict[Holder, Reply | Failure]:
        """What was answered before, and what is answered now; a reply is on disk before it is used."""
        files = {holder: self._file(holder, request) for holder, request in requests.items()}
        known = {holder: _load(file) for holder, file in files.items()}
        asked = {
            holder: request
            for holder, request in requests.items()
            if known[holder] is None or request.kind == ALWAYS_ASKED
        }
        answers = self.through.exchange(asked) if asked else {}
        for holder, answer in answers.items():
            before = known[holder]
            if isinstance(answer, Failure):
                continue
            if before is not None and before.spec != answer.spec:
                raise ValueError(
                    f"the rows of site {holder!r} are not those of the run that was interrupted: empty "
                    f"{self.folder} to start anew"
                )
            if before is None:
                _save(files[holder], answer)
        self.read += len(requests) - len(asked)
        found = {**{holder: reply for holder, reply in known.items() if reply is not None}, **answers}
        return {holder: found[holder] for holder in requests}

    def close(self) -> None:
        """Let go of the transport; the files stay."""
        self.through.close()

    def _file(self, holder: Holder, request: Request) -> Path:
        spec = [holder, request.kind, dict(request.spec)]
        return self.folder / f"{key_of(spec, request.arrays)}.reply"


def _save(file: Path, reply: Reply) -> None:
    """Whole or not at all. Where the disk is full the run goes on, and can only not be resumed from here."""
    temporary = file.with_suffix(f".{os.getpid()}")
    try:
        with temporary.open("wb") as out:
            with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
                archive.writestr(MEMBER, json.dumps([dict(reply.spec), list(reply.arrays)]))
                for i, array in enumerate(reply.arrays.values()):
                    with archive.open(f"{i}.npy", "w", force_zip64=True) as member:
                        np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, file)
    except OSError as error:
        log.warning("a reply could not be kept in %s (%s): a restart will ask for it again", file, error)
        temporary.unlink(missing_ok=True)


def _load(file: Path) -> Reply | None:
    """A reply from disk; None where there is none, or where it is damaged and must be asked for again."""
    if not file.is_file():
        return None
    try:
        with zipfile.ZipFile(file) as archive:
            spec, names = json.loads(archive.read(MEMBER))
            arrays = {}
            for i, name in enumerate(names):
                with archive.open(f"{i}.npy") as member:
                    arrays[name] = np.lib.format.read_array(member, allow_pickle=False)
            return Reply(spec, arrays)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        log.warning("%s is damaged (%s): it is asked for again", file, error)
        return None
