"""The progress bar: on stderr, and only where someone looks."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any, Self


class Shown:
    """Something with a bar of rich's, or with none where nobody looks; it runs inside ``with``."""

    _bar: Any = None

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


class Bar(Shown):
    """A bar with round, objective and time left; does nothing when ``shown`` is False (None: a terminal?)."""

    def __init__(self, title: str, rounds: int, done: int, shown: bool | None):
        if shown if shown is not None else sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("round {task.completed}/{task.total}"),
                TextColumn("objective {task.fields[objective]}"),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
            )
            self._task = self._bar.add_task(title, total=rounds, completed=done, objective="…")

    def say(self, sentence: str) -> None:
        """Print a sentence above the bar."""
        if self._bar is not None:
            self._bar.console.print(sentence, highlight=False, markup=False)

    def show(self, done: int, objective: float | None = None) -> None:
        """Move the bar."""
        if self._bar is not None:
            shown = {} if objective is None else {"objective": f"{objective:.6g}"}
            self._bar.update(self._task, completed=done, **shown)
