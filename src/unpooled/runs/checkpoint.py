"""The file that a run is kept in on its way. A disk that is full costs the file, never the run."""

from __future__ import annotations

import logging
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from unpooled.runs.run import Run

SAVE_SECONDS = 2.0  # the least time between two saves of a run whose rows are at hand

log = logging.getLogger("unpooled")


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a path at which no checkpoint can be, before anything is computed."""
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"checkpoint is to go into {path.parent}, which is not a folder")
    if path.is_dir():
        raise IsADirectoryError(f"checkpoint is to be the file {path}, which is a folder")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PermissionError(f"checkpoint is to go into {path.parent}, which may not be written to")


@dataclass
class Checkpoint:
    """Keeps the latest state of a run in a file: after ``every_round``, or only every few seconds.

    Where it cannot be written, the file stays as it was; that is said once, and each time is another try.
    """

    path: Path
    every_round: bool
    _tried: float = field(default=float("-inf"), init=False)
    _is_said: bool = field(default=False, init=False)

    def is_due(self) -> bool:
        """Whether it is time to save."""
        return self.every_round or time.monotonic() - self._tried >= SAVE_SECONDS

    def keep(self, run: Run) -> bool:
        """Save the run; whether it is in the file."""
        try:
            run.save(self.path)
        except OSError as error:
            self._say(run, error.strerror or str(error))
            return False
        finally:
            self._tried = time.monotonic()
        return True

    def finish(self, run: Run) -> None:
        """Save the run that has ended; where that fails, its notes say so, for it is nowhere else."""
        if not self.keep(run):
            run.notes.append(f"The run is not in {self.path}, which could not be written: save it elsewhere.")

    def _say(self, run: Run, reason: str) -> None:
        if not self._is_said:
            self._is_said = True
            log.warning(
                "%s cannot be written after round %d (%s): the run goes on, and each checkpoint tries again",
                *(self.path, run.state.round, reason),
            )
