"""Carrying jobs out, one after the other or in parallel processes, so that Ctrl-C loses nothing.

In parallel the terminal sends Ctrl-C to every process. The workers let it pass, from their birth on; the
parent, which also gets it, closes a pipe that they watch, and each then ends its run as runs end: saved and
resumable. A parent that dies closes the pipe too.
"""

from __future__ import annotations

import _thread
import dataclasses
import os
import signal
import threading
from collections.abc import Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from unpooled._interrupt import deferred
from unpooled.engines import Local
from unpooled.experiments.jobs import Job
from unpooled.runs.run import Run, Status

J = TypeVar("J", bound=Job)


def carry_out(todo: Sequence[J], workers: int) -> Generator[tuple[J, Run], None, None]:
    """The jobs with their runs as they end: in order on all cores, or ``workers`` at a time on one core each.

    Raises ``KeyboardInterrupt`` at Ctrl-C, after the runs under way were saved.
    """
    yield from _in_turn(todo) if workers == 1 else _in_parallel(todo, workers)


def _in_turn(todo: Sequence[J]) -> Generator[tuple[J, Run], None, None]:
    for job in todo:
        run = job.run()
        yield job, run
        if run.status == Status.INTERRUPTED:
            raise KeyboardInterrupt


def _in_parallel(todo: Sequence[J], workers: int) -> Generator[tuple[J, Run], None, None]:
    context = get_context("spawn")
    watched, held = context.Pipe(duplex=False)
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_begin, initargs=(watched,)) as pool:
        try:
            with deferred():  # a submitted job may start a process
                futures = {pool.submit(_alone, job): job for job in todo}
            for future in as_completed(futures):
                run = future.result()
                if run is not None:
                    yield futures[future], run
        finally:
            held.close()
            pool.shutdown(wait=True, cancel_futures=True)
            watched.close()


class _Worker:
    """What a worker process knows: whether to stop, and whether a job is under way."""

    stopping = False
    busy = False


def _begin(watched: Connection) -> None:
    """Let the keyboard's signal pass; watch the parent's pipe instead. No line goes into the parent's bar."""
    os.environ["UNPOOLED_QUIET"] = "1"
    signal.signal(signal.SIGINT, _on_signal)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_watch, args=(watched,), daemon=True).start()


def _on_signal(signum: int, frame: Any) -> None:
    if _Worker.busy and _Worker.stopping:
        _Worker.busy = False  # once
        raise KeyboardInterrupt


def _watch(watched: Connection) -> None:
    watched.poll(None)  # until the parent closes its end; nothing is ever sent
    _Worker.stopping = True
    _thread.interrupt_main()


def _alone(job: Job) -> Run | None:
    """A job in a process of its own: one thread, no bar; None where it was stopped before it began."""
    if _Worker.stopping:
        return None
    options = {**dict(job.options), "engine": Local(threads=1), "progress": False}
    _Worker.busy = True
    try:
        return dataclasses.replace(job, options=tuple(options.items())).run()
    except KeyboardInterrupt:
        return None
    finally:
        _Worker.busy = False
