"""Print one line to stderr when compilation takes more than a second.

The line appears at most once per process, and not when compiled code is read from disk. It goes through
``print``, so rich places it above a running progress bar. Set UNPOOLED_QUIET=1 to suppress it.
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

SILENT_SECONDS = 1.0  # total compile time that passes without a message


class CompileNotice(Listener):  # type: ignore[misc]
    """Hears when numba begins to compile a function and when it has. ``kept`` are ours, and where they go.

    ``kept`` maps this package's dispatchers to their cache directories; other functions are ignored. numba
    compiles one function at a time and fires nested events for its callees, hence ``depth``.
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
            self.timer = Timer(max(0.0, SILENT_SECONDS - self.spent), self._print, [self.kept[function]])
            self.timer.daemon = True
            self.timer.start()

    def on_end(self, event: Any) -> None:
        """Stop the clock when the outermost function is compiled, or has failed to compile."""
        if self.depth == 0:
            return
        self.depth -= 1
        if self.depth == 0 and self.timer is not None:
            self.timer.cancel()
            self.spent += time.monotonic() - self.began

    def _print(self, directory: Path | None) -> None:
        self.is_silent = True
        sentence = "unpooled: compiling … (about 10 s, in every process: cannot write to UNPOOLED_CACHE_DIR)"
        if directory is not None:
            root = directory.parents[2]
            sentence = (
                "unpooled: compiling … (about 10 s, once for each combination of loss, penalty and algorithm"
                f"; cached in {root} for later processes)"
            )
        print(sentence, file=sys.stderr, flush=True)
