"""The engine against contenders doing the same work on the same batches: times as fast."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks import targets
from benchmarks.agreement import check
from benchmarks.contenders import CONTENDERS, Contender, Entry
from benchmarks.options import Options
from benchmarks.precision import PRECISIONS, TOLERANCE
from benchmarks.row import Row
from benchmarks.shapes import Shape
from benchmarks.timing import alternate

SECTION = "speed"


def rows(options: Options) -> Iterator[Row]:
    """Every shape in every precision against every contender."""
    for shape in options.shapes:
        for dtype in ("float32", "float64"):
            yield from _compare(shape, dtype, options)


def _compare(shape: Shape, dtype: str, options: Options) -> Iterator[Row]:
    """All contenders and our engines on data of one precision, in one series of turns."""
    ours = {p.name: p for p in PRECISIONS if p.data == dtype}
    work = next(iter(ours.values())).work(shape)
    runners: dict[str, Contender] = {name: p.engine(work) for name, p in ours.items()}
    truth = next(iter(runners.values())).run(shape.rounds)
    for name, engine in runners.items():
        check(f"{shape.name}, {name}", engine.run(shape.rounds), truth, TOLERANCE[dtype])
    threads: dict[str, int] = {}
    for entry in CONTENDERS:
        if entry.is_installed:
            counts = options.thread_counts[-1:] if entry.takes_all else options.thread_counts
            solvers = {count: entry.load()(work, count) for count in counts}
            threads[entry.name] = _fastest(entry, solvers, shape, truth, TOLERANCE[dtype])
            runners[entry.name] = solvers[threads[entry.name]]
    times = alternate({name: _turn(runner, shape) for name, runner in runners.items()}, options.turns)
    for name, precision in ours.items():
        for entry in CONTENDERS:
            title = f"{shape.name}, {precision.name}: against {entry.name}"
            if not entry.is_installed:
                yield Row(SECTION, title, None, "×", detail=entry.excuse)
                continue
            low, high = times.spread(entry.name, name)
            mine, theirs = (1e3 * times.median(who) / shape.rounds for who in (name, entry.name))
            count = threads[entry.name]
            detail = (
                f"{theirs:.3g} ms a round in {dtype} on {count} thread{'s' if count > 1 else ''}, "
                f"ours {mine:.3g}; {low:.2f}–{high:.2f}"
            )
            target = targets.SPEED.get((shape.name, entry.name)) if dtype == "float32" else None
            yield Row(SECTION, title, times.ratio(entry.name, name), "×", target, detail)


def _fastest(
    entry: Entry, solvers: dict[int, Contender], shape: Shape, truth: NDArray[np.float64], tolerance: float
) -> int:
    """The number of threads that suits the contender best, its results checked."""
    seconds = {}
    for count, solver in solvers.items():
        check(f"{shape.name}, {entry.name}", solver.run(shape.rounds), truth, tolerance)
        times = []
        for _ in range(2):
            began = time.perf_counter()
            solver.run(shape.rounds)
            times.append(time.perf_counter() - began)
        seconds[count] = min(times)
    return min(seconds, key=lambda count: seconds[count])


def _turn(runner: Contender, shape: Shape) -> Callable[[], object]:
    return lambda: runner.run(shape.rounds)
