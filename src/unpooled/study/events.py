"""What happens in a study, for those who watch it: events by name, with plain data."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Watch = Callable[[str, Mapping[str, Any]], None]


def silent(event: str, data: Mapping[str, Any]) -> None:
    """Nobody watches."""


class EventFile:
    """A watcher that writes a line for each event, for another process to follow.

    Once ``path`` cannot be written, because the disk is full, lines go to ``spare``, on another one.
    """

    def __init__(self, path: Path, spare: Path | None = None):
        self.path, self.spare = path, spare
        path.parent.mkdir(parents=True, exist_ok=True)

    def __call__(self, event: str, data: Mapping[str, Any]) -> None:
        """Write the event."""
        line = json.dumps({"event": event, **data}) + "\n"
        try:
            self._append(line)
        except OSError:
            if self.spare is None:
                raise
            self.path, self.spare = self.spare, None
            self._append(line)

    def _append(self, line: str) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line)


class Follower:
    """Reads the lines that an ``EventFile`` has gained since the last look, in one file or the other."""

    def __init__(self, path: Path, spare: Path | None = None):
        self.path, self.spare = path, spare
        self._read: dict[Path, int] = {}

    def new(self) -> list[dict[str, Any]]:
        """Whole lines that are new."""
        return [event for path in (self.path, self.spare) if path for event in self._new(path)]

    def _new(self, path: Path) -> list[dict[str, Any]]:
        if not path.exists():
            return []
        with path.open("rb") as file:
            file.seek(self._read.get(path, 0))
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._read[path] = self._read.get(path, 0) + len(whole)
        return [json.loads(line) for line in whole.splitlines()]
