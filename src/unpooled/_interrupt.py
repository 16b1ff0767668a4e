"""Ctrl-C is never lost: who works in rounds asks at each of them whether it was pressed.

The interpreter raises ``KeyboardInterrupt`` wherever it happens to be. In the middle of an extension
module's import, of an attribute that C code only asks about, or of bytes that Ray deserialises, the exception
is dropped in silence, and the work would go on.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)  # a service's SIGTERM counts where a handler makes it an interrupt


class Interrupt:
    """What a signal's handler has raised while work was under way, also where it got lost."""

    def __init__(self) -> None:
        self._raised: BaseException | None = None
        self._before: dict[int, Any] = {}
        self._hook_before: Any = sys.__unraisablehook__

    @property
    def came(self) -> bool:
        """Whether there was one."""
        return self._raised is not None

    def check(self) -> None:
        """Raise it here if it came before."""
        if self._raised is not None:
            raise self._raised.with_traceback(None)

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        """Do what the handler before us does. One that does not raise wants no interrupt."""
        try:
            self._before[signum](signum, frame)
        except BaseException as raised:
            self._raised = raised
            raise

    def _unraisable(self, lost: Any) -> None:
        """Print nothing of an interrupt that was dropped: it is raised again at the next ``check``."""
        if lost.exc_value is None or lost.exc_value is not self._raised:
            self._hook_before(lost)

    def _install(self) -> None:
        self._hook_before = sys.unraisablehook
        sys.unraisablehook = self._unraisable
        for signum in SIGNALS:
            handler = signal.getsignal(signum)
            if not callable(handler):  # ignored, or the system's default
                continue
            around = getattr(handler, "__self__", None)
            if isinstance(around, Interrupt) and around._raised is not None:
                self._raised = around._raised  # lost before we began
            self._before[signum] = handler
            signal.signal(signum, self._handle)

    def _restore(self) -> None:
        if sys.unraisablehook == self._unraisable:
            sys.unraisablehook = self._hook_before
        for signum, handler in self._before.items():
            if signal.getsignal(signum) == self._handle:  # not one that was installed meanwhile
                signal.signal(signum, handler)


@contextmanager
def recorded() -> Iterator[Interrupt]:
    """Within it, interrupts are recorded and then raised as before. Outside the main thread it does nothing.

    In another ``recorded`` block, one that got lost in the outer one before is known in the inner one too.
    """
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return
    try:
        interrupt._install()
        yield interrupt
    finally:
        interrupt._restore()


@contextmanager
def deferred() -> Iterator[None]:
    """Ctrl-C waits, here and in processes started meanwhile, which otherwise would die of it half awake.

    They inherit the mask. Here it is not enough: another thread may take the signal, and the interpreter then
    interrupts the main one all the same.
    """
    came: list[tuple[Any, ...]] = []
    handler = signal.getsignal(signal.SIGINT)
    is_ours = callable(handler) and threading.current_thread() is threading.main_thread()
    if is_ours:
        signal.signal(signal.SIGINT, lambda *signalled: came.append(signalled))
    try:
        with _masked():
            yield
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, handler)
    if came and callable(handler):
        handler(*came[0])


@contextmanager
def _masked() -> Iterator[None]:
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
