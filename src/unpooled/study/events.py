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
    """A watcher that writes a line for each event, for another process to follow."""

    def __init__(self, path: Path):
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)

    def __call__(self, event: str, data: Mapping[str, Any]) -> None:
        """Write the event."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"event": event, **data}, ensure_ascii=False) + "\n")


class Follower:
    """Reads the lines that an ``EventFile`` has gained since the last look."""

    def __init__(self, path: Path):
        self.path, self._read = path, 0

    def new(self) -> list[dict[str, Any]]:
        """Whole lines that are new."""
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            file.seek(self._read)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._read += len(whole)
        return [json.loads(line) for line in whole.splitlines()]
