"""Child processes that do not outlive us, with their output in a file; and ports for them."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from unpooled.engines.flower.watchdog import GRACE
from unpooled.engines.retry import Retry

WATCHDOG = Path(__file__).with_name("watchdog.py")
PAUSE = 0.05  # seconds between two checks
START_SECONDS = 60.0  # that a process may take to open its port
ATTEMPTS = 5  # at a port that was free when it was chosen


class ProcessError(RuntimeError):
    """A process of Flower failed; the message has the end of its log."""


class ChildProcess:
    """A command in its own session, under a watchdog that ends it, and all it started, when we end.

    Its output goes to ``folder/name.log``, each start after the last one's.
    """

    def __init__(self, name: str, command: Sequence[str], folder: Path, environment: dict[str, str]):
        self.name = name
        self.log = folder / f"{name}.log"
        self._pidfile = folder / f".{name}.pid"
        self._pidfile.unlink(missing_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        watched = [sys.executable, "-I", "-S", str(WATCHDOG), str(self._pidfile), *command]
        with self.log.open("ab") as log:
            self._began = log.tell()
            self._watchdog = subprocess.Popen(
                watched,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )

    @property
    def returncode(self) -> int | None:
        """The exit status; None while it runs. A death by signal n is 128 + n, as in a shell."""
        return self._watchdog.poll()

    @property
    def pid(self) -> int:
        """The process's own id, not the watchdog's."""
        self.until(self._pidfile.exists, 10.0, "start")
        self.until(lambda: self._pidfile.read_text() != "", 10.0, "start")
        return int(self._pidfile.read_text())

    def words(self, size: int = 4000) -> str:
        """The end of what it has written since this start."""
        with self.log.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(self._began, end - size))
            return file.read().decode(errors="replace")

    def until(self, is_so: Callable[[], bool], timeout: float, what: str) -> None:
        """Wait until something is so; ``ProcessError`` where the process ends, or the time is up, before."""
        for attempt in Retry(seconds=timeout, pause=PAUSE):
            if is_so():
                return
            if self.returncode is not None:
                raise ProcessError(
                    f"{self.name} ended with exit status {self.returncode}; the end of {self.log}:\n"
                    f"{self.words()}"
                )
            if attempt.is_last:
                raise ProcessError(
                    f"{self.name} did not {what} within {timeout:g} s; the end of {self.log}:\n{self.words()}"
                )

    def wait(self, timeout: float | None = None) -> int:
        """The exit status, once it ends; ``subprocess.TimeoutExpired`` where it does not in time."""
        status = self._watchdog.wait(timeout)
        self._let_go()
        return status

    def kill(self) -> None:
        """Kill the process at once, as a power cut would; the watchdog clears up after it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.wait(2 * GRACE + 5.0)

    def stop(self) -> int:
        """Ask it to end, kill it if it does not, and give its exit status. Stopping twice is fine."""
        self._let_go()
        try:
            return self._watchdog.wait(2 * GRACE + 5.0)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._watchdog.pid, signal.SIGKILL)
            return self._watchdog.wait()

    def _let_go(self) -> None:
        """Close our end of the pipe, which tells the watchdog to end the process."""
        assert self._watchdog.stdin is not None
        self._watchdog.stdin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()


def free_port(host: str) -> int:
    """A port that is free now."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def is_open(host: str, port: int) -> bool:
    """Whether something takes connections at a port."""
    with contextlib.suppress(OSError), socket.create_connection((host, port), 1.0):
        return True
    return False
