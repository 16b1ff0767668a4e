"""A process that does not outlive us, with its words in a file."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from unpooled.engines.flower.guard import GRACE

GUARD = Path(__file__).with_name("guard.py")
PAUSE = 0.05  # seconds between two looks


class ProcessError(RuntimeError):
    """A process of Flower did not do what it was started for; the message has the end of its log."""


class Guarded:
    """A command in a session of its own, under a guard that ends it, and all it started, when we end.

    Its output goes to ``folder/name.log``, each start after the last one's.
    """

    def __init__(self, name: str, command: Sequence[str], folder: Path, environment: dict[str, str]):
        self.name = name
        self.log = folder / f"{name}.log"
        self._pidfile = folder / f".{name}.pid"
        self._pidfile.unlink(missing_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        guarded = [sys.executable, "-I", "-S", str(GUARD), str(self._pidfile), *command]
        with self.log.open("ab") as log:
            self._began = log.tell()
            self._guard = subprocess.Popen(
                guarded,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )

    @property
    def returncode(self) -> int | None:
        """The exit status; None while it runs. A death by signal n is 128 + n, as in a shell."""
        return self._guard.poll()

    @property
    def pid(self) -> int:
        """The process's own id, not the guard's."""
        self.until(self._pidfile.exists, 10.0, "start")
        self.until(lambda: self._pidfile.read_text() != "", 10.0, "start")
        return int(self._pidfile.read_text())

    def words(self, size: int = 4000) -> str:
        """The end of what this start has written."""
        with self.log.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(self._began, end - size))
            return file.read().decode(errors="replace")

    def until(self, is_so: Callable[[], bool], timeout: float, what: str) -> None:
        """Wait until something is so; a ``ProcessError`` where the process ends or time is up before."""
        deadline = time.monotonic() + timeout
        while not is_so():
            if self.returncode is not None:
                raise ProcessError(
                    f"{self.name} ended with exit status {self.returncode}; the end of {self.log}:\n"
                    f"{self.words()}"
                )
            if time.monotonic() > deadline:
                raise ProcessError(
                    f"{self.name} did not {what} within {timeout:g} s; the end of {self.log}:\n{self.words()}"
                )
            time.sleep(PAUSE)

    def wait(self, timeout: float | None = None) -> int:
        """The exit status, once it ends; ``subprocess.TimeoutExpired`` where it does not in time."""
        status = self._guard.wait(timeout)
        self._let_go()
        return status

    def kill(self) -> None:
        """Kill the process without a word, as a power cut would; the guard clears up after it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.wait(2 * GRACE + 5.0)

    def stop(self) -> int:
        """Ask it to end, kill it if it does not, and give its exit status. Stopping twice is fine."""
        self._let_go()
        try:
            return self._guard.wait(2 * GRACE + 5.0)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._guard.pid, signal.SIGKILL)
            return self._guard.wait()

    def _let_go(self) -> None:
        """Close our end of the pipe, which the guard takes as our end."""
        assert self._guard.stdin is not None
        self._guard.stdin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()
