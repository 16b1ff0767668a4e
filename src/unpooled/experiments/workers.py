"""Carrying jobs out, one after the other or in parallel processes, so that Ctrl-C loses nothing.

In parallel the terminal sends Ctrl-C to every process. The workers let it pass; the parent, which also gets
it, raises a flag that they watch, and each then ends its run as a run ends: saved, and resumable.
"""

from __future__ import annotations

import _thread
import dataclasses
import signal
import threading
from collections.abc import Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from typing import Any, TypeVar

from unpooled.engines import Local
from unpooled.experiments.jobs import Job
from unpooled.run import Run, Status

J = TypeVar("J", bound=Job)


class StoppedError(Exception):
    """The work was stopped from the keyboard; runs that were under way are saved."""


def carry_out(todo: Sequence[J], workers: int) -> Generator[tuple[J, Run], None, None]:
    """The jobs with their runs as they end: in order on all cores, or ``workers`` at a time on one core each.

    Raises ``StoppedError`` at Ctrl-C, after the runs under way were saved.
    """
    yield from _in_turn(todo) if workers == 1 else _in_parallel(todo, workers)


def _in_turn(todo: Sequence[J]) -> Generator[tuple[J, Run], None, None]:
    for job in todo:
        try:
            run = job.run()
        except KeyboardInterrupt:  # before its rounds began
            raise StoppedError from None
        yield job, run
        if run.status == Status.INTERRUPTED:
            raise StoppedError


def _in_parallel(todo: Sequence[J], workers: int) -> Generator[tuple[J, Run], None, None]:
    context = get_context("spawn")
    stop = context.Event()
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_begin, initargs=(stop,)) as pool:
        futures = {pool.submit(_alone, job): job for job in todo}
        try:
            for future in as_completed(futures):
                run = future.result()
                if run is not None:
                    yield futures[future], run
        except KeyboardInterrupt:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise StoppedError from None
        except BaseException:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise


class _Worker:
    """What a worker process knows: the parent's flag, and whether a job is under way."""

    stop: Event
    busy = False


def _begin(stop: Event) -> None:
    """Let the keyboard's signal pass; watch the parent's flag instead."""
    _Worker.stop = stop
    signal.signal(signal.SIGINT, _on_signal)
    threading.Thread(target=_watch, daemon=True).start()


def _on_signal(signum: int, frame: Any) -> None:
    if _Worker.busy and _Worker.stop.is_set():
        _Worker.busy = False  # once
        raise KeyboardInterrupt


def _watch() -> None:
    _Worker.stop.wait()
    _thread.interrupt_main()


def _alone(job: Job) -> Run | None:
    """A job in a process of its own: one thread, no bar; None where it was stopped before it began."""
    if _Worker.stop.is_set():
        return None
    options = {**dict(job.options), "engine": Local(threads=1), "progress": False}
    _Worker.busy = True
    try:
        return dataclasses.replace(job, options=tuple(options.items())).run()
    except KeyboardInterrupt:
        return None
    finally:
        _Worker.busy = False
