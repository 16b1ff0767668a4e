"""Replies kept on disk, so that a coordinator that was killed goes on where it stood.

A holder's answer depends only on the request and its rows (see ``remote.client_server``), and a coordinator
that restarts with the same settings asks the same. So replies are filed under a digest of holder and request:
what was answered before is read, the rest is asked, and the result has the bits of an uninterrupted run. Only
the description of the rows ("describe") is asked anew each time, and must be what it was.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from unpooled._files import DAMAGE, whole_file
from unpooled.engines.remote import packing
from unpooled.engines.remote.messages import Failure, Holder, Reply, Request, Through, Transport
from unpooled.engines.remote.specs import key_of

ALWAYS_ASKED = "describe"

log = logging.getLogger("unpooled.flower")


class Journal(Through):
    """A transport that remembers. ``folder`` is made where it is not there; empty it to start anew."""

    def __init__(self, transport: Transport, folder: Path):
        super().__init__(transport)
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.read = 0  # replies that were not asked for again

    def exchange(self, requests: Mapping[Holder, Request]) -> dict[Holder, Reply | Failure]:
        """What was answered before, and what is answered now; a reply is on disk before it is used."""
        files = {holder: self._file(holder, request) for holder, request in requests.items()}
        known = {holder: _load(file) for holder, file in files.items()}
        asked = {
            holder: request
            for holder, request in requests.items()
            if known[holder] is None or request.kind == ALWAYS_ASKED
        }
        answers = self.transport.exchange(asked) if asked else {}
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

    def _file(self, holder: Holder, request: Request) -> Path:
        spec = [holder, request.kind, dict(request.spec)]
        return self.folder / f"{key_of(spec, request.arrays)}.reply"


def _save(file: Path, reply: Reply) -> None:
    """Whole or not at all. Where the disk is full the run goes on, and can only not be resumed from here."""
    try:
        with whole_file(file) as out:
            packing.write(out, reply.spec, reply.arrays)
    except OSError as error:
        log.warning("a reply could not be kept in %s (%s): a restart will ask for it again", file, error)


def _load(file: Path) -> Reply | None:
    """A reply from disk; None where there is none, or where it is damaged and must be asked for again."""
    if not file.is_file():
        return None
    try:
        with file.open("rb") as piece:
            return Reply(*packing.read(piece))
    except DAMAGE as error:
        log.warning("%s is damaged (%s): it is asked for again", file, error)
        return None
