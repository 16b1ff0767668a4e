"""Compiling that takes a while is said on stderr, once in a process; reading compiled code from disk is not.

It is printed as any other: where a progress bar of rich's is shown, rich puts it above the bar. With
UNPOOLED_QUIET=1 in the environment nothing is said.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from threading import Timer
from typing import Any

from unpooled.kernels.numba_internals import Listener, function_of

PATIENCE = 1.0  # seconds of compiling, in all, of which nothing is said


class Announcer(Listener):  # type: ignore[misc]
    """Hears when numba begins to compile a function and when it has. ``kept`` are ours, and where they go.

    What they call is compiled between the two, and tells of itself too. numba compiles one at a time.
    """

    def __init__(self, kept: Mapping[Any, Path | None]):
        self.kept = kept
        self.depth, self.began, self.spent = 0, 0.0, 0.0
        self.timer: Timer | None = None
        self.is_silent = bool(os.environ.get("UNPOOLED_QUIET"))

    def on_start(self, event: Any) -> None:
        """A function is about to be compiled: the first of them, unless it is not ours, starts the clock."""
        function = function_of(event)
        if self.depth == 0 and (self.is_silent or function not in self.kept):
            return
        self.depth += 1
        if self.depth == 1:
            self.began = time.monotonic()
            self.timer = Timer(max(0.0, PATIENCE - self.spent), self._say, [self.kept[function]])
            self.timer.daemon = True
            self.timer.start()

    def on_end(self, event: Any) -> None:
        """It is compiled, or cannot be."""
        if self.depth == 0:
            return
        self.depth -= 1
        if self.depth == 0 and self.timer is not None:
            self.timer.cancel()
            self.spent += time.monotonic() - self.began

    def _say(self, directory: Path | None) -> None:
        self.is_silent = True
        sentence = (
            "unpooled: compiling … (10 s or so, in every process: UNPOOLED_CACHE_DIR cannot be written)"
        )
        if directory is not None:
            root = directory.parents[2]
            sentence = (
                "unpooled: compiling … (10 s or so, once for each combination of loss, penalty and algorithm"
                f"; kept in {root} for later processes)"
            )
        print(sentence, file=sys.stderr, flush=True)
