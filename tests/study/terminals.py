"""The commands of a study in terminals of their own, which can be killed with all that they have started."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from tests.processes import marked

MARK = "UNPOOLED_TEST_TERMINAL"  # in the environment of a command and of all that it starts
SECONDS = 400.0  # Flower takes 180 to give up a reply that was cut off in the middle


class Terminal:
    """A command that runs in a folder, with its words in a file."""

    def __init__(self, folder, name, *arguments):
        self.mark, self.log = uuid.uuid4().hex, folder / f"{name}.txt"
        unpooled = shutil.which("unpooled", path=str(Path(sys.executable).parent))
        with self.log.open("ab") as file:
            self.process = subprocess.Popen(
                [unpooled, *map(str, arguments)],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, MARK: self.mark},
            )

    @property
    def words(self):
        return self.log.read_text("utf-8")

    def running(self):
        """Everything that belongs to it, whoever is its parent now."""
        return set(marked(self.mark))

    def kill(self):
        """A power cut: everything without a word, also what is just being started."""

        def is_dead():
            for pid in self.running():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return not self.running()

        until(is_dead, "everything to be dead")
        self.process.wait()

    def ends(self):
        """The exit status; nothing is left then."""
        until(lambda: self.process.poll() is not None, f"the end of it:\n{self.words}")
        until(lambda: not self.running(), "what was started to end too", 20.0)
        return self.process.returncode

    def stop(self):
        """Ask it to end, as a service is; kill it if it does not."""
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(20.0)
        self.kill()


def until(is_so, what, seconds=SECONDS):
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            pytest.fail(f"waited {seconds:g} s for {what() if callable(what) else what}")
        time.sleep(0.05)
