"""Ctrl-C while an experiment is reproduced: one error for it, and never unheard."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class UserInterruptError(Exception):
    """The work was stopped from the keyboard; runs that were under way are saved."""


class InterruptFlag:
    """Whether Ctrl-C was pressed, also where what it raised got lost.

    The interpreter raises ``KeyboardInterrupt`` wherever it happens to be. In the middle of an extension
    module's import, or of an attribute that C code only asks about, the exception is dropped in silence.
    """

    pressed = False

    def check(self) -> None:
        """Stop here if it was pressed before."""
        if self.pressed:
            raise UserInterruptError


@contextmanager
def catch_interrupts() -> Iterator[InterruptFlag]:
    """Within it, Ctrl-C ends as ``UserInterruptError``, at the latest at the next ``check`` or at its end."""
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
