"""Handle Ctrl-C while an experiment runs: one exception for it, which is never lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class UserInterruptError(Exception):
    """The user pressed Ctrl-C; the runs in progress are saved."""


class InterruptFlag:
    """Record that Ctrl-C was pressed, even if its exception was swallowed.

    The interpreter raises ``KeyboardInterrupt`` wherever it happens to be. In the middle of an extension
    module's import, or of an attribute that C code only asks about, the exception is dropped in silence.
    """

    pressed = False

    def check(self) -> None:
        """Raise ``UserInterruptError`` if Ctrl-C was pressed."""
        if self.pressed:
            raise UserInterruptError


@contextmanager
def catch_interrupts() -> Iterator[InterruptFlag]:
    """Turn Ctrl-C into ``UserInterruptError``, at the latest at the next ``check`` or on leaving."""
    keyboard = InterruptFlag()
    before = signal.getsignal(signal.SIGINT)
    is_ours = callable(before) and threading.current_thread() is threading.main_thread()

    def note(signum: int, frame: Any) -> None:
        keyboard.pressed = True
        if callable(before):
            before(signum, frame)

    if is_ours:
        signal.signal(signal.SIGINT, note)
    try:
        yield keyboard
        keyboard.check()
    except KeyboardInterrupt:
        raise UserInterruptError from None
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, before)
