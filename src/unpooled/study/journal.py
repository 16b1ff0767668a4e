"""The checkpoint of a study: every exchange that was answered, on disk before the next one.

All that a coordinator does follows from the answers it got, to the last bit. So a study is resumed by doing
it again with the answers at hand, and asking the sites only for what is missing: the result is the one that
an uninterrupted run would have had. A damaged answer is asked for again; so is all that a site said of which
something could not be used, for its table may be another one by then. The folder is readable by its owner
only, holds what sites sent, and is deleted when the results are written.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from unpooled._files import DAMAGE, plain, whole_file
from unpooled._version import versions
from unpooled.engines.remote import packing
from unpooled.engines.remote.messages import Failure, Holder, Reply, Request, Through, Transport
from unpooled.engines.remote.specs import key_of
from unpooled.study.config import Study, StudyError
from unpooled.study.events import Watch
from unpooled.study.forecast import Forecast


class Journal(Through):
    """A transport that remembers: what was answered before is not asked again."""

    def __init__(self, transport: Transport, folder: Path, study: Study, watch: Watch, *, resume: bool):
        super().__init__(transport)
        self.folder, self.study, self.watch = folder, study, watch
        self.count, self.forecast = 0, Forecast(study, watch)
        self.live, self.seconds = 0, 0.0  # exchanges that sites took part in, and how long they took
        self.is_broken = False
        self.is_replayed = False  # whether all of the last answers were on disk
        self.state: dict[str, Any] = {
            "study": study.agreed,
            "versions": versions(),
            "sites": None,
            "without": {},
        }
        if resume:
            self._read_state()
        elif folder.exists():
            raise unfinished(folder)
        else:
            folder.mkdir(parents=True, mode=0o700)
            self.save()

    @property
    def sites(self) -> list[str] | None:
        """Who took part in what is on disk; None where that is not yet decided."""
        found: list[str] | None = self.state["sites"]
        return found

    @property
    def without(self) -> dict[str, str]:
        """Sites that were given up, and why."""
        return dict(self.state["without"])

    @property
    def is_told(self) -> bool:
        """Whether the sites know that the study is done."""
        return bool(self.state.get("told"))

    def begin(self, sites: list[str], without: Mapping[str, str]) -> None:
        """An attempt with these sites; answers of another attempt are of no use."""
        self.count, self.forecast = 0, Forecast(self.study, self.watch)
        if self.state["sites"] == sites:
            return
        for path in self.folder.glob("*.npz"):
            path.unlink()
        self.state |= {"sites": sites, "without": dict(without)}
        self.save()

    def exchange(self, requests: Mapping[Holder, Request]) -> dict[Holder, Reply | Failure]:
        """The answers on disk, and those that sites give now for what is not there."""
        self.count += 1
        path, keys = self._path(self.count), {site: _digest(each) for site, each in requests.items()}
        known = self._read(path, keys)
        missing = {site: request for site, request in requests.items() if site not in known}
        self.is_replayed = not missing
        self.forecast.ask(requests)
        if missing:
            self._say(missing)
            began = time.monotonic()
            known |= self.transport.exchange(missing)
            self.live, self.seconds = self.live + 1, self.seconds + time.monotonic() - began
            self._keep(path, keys, known)
        self.forecast.answered(known)
        return {site: known[site] for site in requests}

    def _say(self, asked: Mapping[Holder, Request]) -> None:
        """Tell those who watch what is asked, of how many exchanges, and how long they took."""
        left, about = self.forecast.expected + 1 - self.count, {"expected": self.forecast.expected}
        times = {"seconds": self.seconds}
        if self.live and left > 0:
            times["left"] = left * self.seconds / self.live
        kind = next(iter(asked.values())).kind
        self.watch("asked", {"number": self.count, "kind": kind, "sites": len(asked), **about, **times})

    def forget_last(self) -> None:
        """The last answers were of no use: a study that is resumed asks for them again."""
        self._path(self.count).unlink(missing_ok=True)

    def forget(self, sites: Collection[str]) -> None:
        """Forget all that these sites have said: it cannot be used, and they may say something else now."""
        for path in sorted(self.folder.glob("*.npz")):
            with contextlib.suppress(*DAMAGE):  # what cannot be read is not used either
                keys, found = self._contents(path)
                left = {site: each for site, each in found.items() if site not in sites}
                self._keep(path, keys, left)

    def save(self) -> None:
        """Write who takes part."""
        text = json.dumps(self.state, indent=1).encode()
        self._write(self.folder / "state.json", lambda file: file.write(text))

    def tell(self) -> None:
        """The sites know that the study is done: there is nobody to wait for any more."""
        self.state["told"] = True
        self.save()

    def delete(self) -> None:
        """The study is done."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06}.npz"

    def _keep(self, path: Path, keys: Mapping[str, str], found: Mapping[str, Reply | Failure]) -> None:
        replies = {site: each for site, each in found.items() if isinstance(each, Reply)}
        about = {
            "keys": {site: keys[site] for site in found},
            "specs": {site: reply.spec for site, reply in replies.items()},
            "failures": {site: each.reason for site, each in found.items() if isinstance(each, Failure)},
        }
        arrays = {f"{site}/{name}": a for site, reply in replies.items() for name, a in reply.arrays.items()}
        self._write(path, lambda file: packing.write(file, about, arrays))

    def _write(self, path: Path, write: Callable[[BinaryIO], object]) -> None:
        try:
            with whole_file(path) as file:
                write(file)
        except OSError as error:
            self._broken(error)

    def _broken(self, error: OSError) -> None:
        """Go on without: the result is worth more than the way back to it."""
        if not self.is_broken:
            self.is_broken = True
            why = f"{self.folder} cannot be written ({error.strerror})"
            self.watch("note", {"text": f"{why}: the study goes on, but cannot be resumed"})

    def _read(self, path: Path, keys: Mapping[str, str]) -> dict[str, Reply | Failure]:
        """The answers on disk to these very questions."""
        if not path.exists():
            return {}
        try:
            kept, found = self._contents(path)
        except DAMAGE:
            self.watch("note", {"text": f"{path} is damaged: its answers are asked for again"})
            return {}
        if any(kept.get(site, key) != key for site, key in keys.items()):
            self.watch("note", {"text": f"{path} answers another question: it is asked again"})
        return {site: found[site] for site, key in keys.items() if kept.get(site) == key}

    def _contents(self, path: Path) -> tuple[dict[str, str], dict[str, Reply | Failure]]:
        """The fingerprint of each site's question, and its answer."""
        with path.open("rb") as file:
            about, arrays = packing.read(file)
        found: dict[str, Reply | Failure] = {}
        for site in about["keys"]:
            if site in about["failures"]:
                found[site] = Failure(about["failures"][site])
                continue
            begins = f"{site}/"
            mine = {name.removeprefix(begins): a for name, a in arrays.items() if name.startswith(begins)}
            found[site] = Reply(about["specs"][site], mine)
        return about["keys"], found

    def _read_state(self) -> None:
        path = self.folder / "state.json"
        try:
            found = json.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            raise StudyError(f"there is nothing to resume in {self.folder}") from None
        except ValueError:
            found = None
        if not _is_state(found):
            raise StudyError(f"{path} is damaged: begin anew, without --resume")
        differ = self.study.differences(found["study"], "in the checkpoint")
        if differ:
            raise StudyError(f"the study in {self.folder} is another one: " + "; ".join(differ))
        if found["versions"] != versions():
            raise StudyError(
                f"{self.folder} was written with {found['versions']}, and this is {versions()}: "
                "resume with the same versions, or begin anew"
            )
        self.state = found


def _is_state(found: Any) -> bool:
    """Whether the checkpoint's own file says what it should."""
    if not isinstance(found, dict):
        return False
    kinds: dict[str, Any] = {"study": dict, "versions": dict, "without": dict, "sites": list | None}
    return all(name in found and isinstance(found[name], kind) for name, kind in kinds.items())


def unfinished(folder: Path) -> StudyError:
    """What to say of a checkpoint in the way of a new study."""
    return StudyError(
        f"{folder} holds a study that was not finished: --resume goes on with it; delete it to begin anew"
    )


def _digest(request: Request) -> str:
    """A fingerprint of what is asked."""
    return key_of([request.kind, plain(request.spec)], request.arrays)
