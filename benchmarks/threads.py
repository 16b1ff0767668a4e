"""One thread against all: efficiency, and whether the results have the same bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from benchmarks import targets
from benchmarks.contenders.engine import Engine
from benchmarks.limit import matrix_product
from benchmarks.options import Options
from benchmarks.precision import DEFAULT, PRECISIONS
from benchmarks.row import Row, Target
from benchmarks.shapes import Shape
from benchmarks.timing import alternate

SECTION = "threads"


def rows(options: Options) -> Iterator[Row]:
    """For every shape; efficiency in the default precision, bits in all. The matrix product's efficiency
    says what the machine allows while it is measured.
    """
    if options.cores > 1:
        products = {f"{n}": matrix_product("float32", n) for n in options.thread_counts}
        yield _efficiency("the machine's own sgemm", products, options, None)
    for shape in options.shapes:
        if options.cores > 1:
            yield _of_rounds(shape, options)
        yield _identity(shape, options)


def _of_rounds(shape: Shape, options: Options) -> Row:
    """A turn goes on where the last one stopped: what is measured are rounds, not the start of a run.

    All threads are what ``engines.Local()`` has without being asked, as in ``simulate``.
    """
    work = DEFAULT.work(shape)
    asked = {n: None if n == options.cores else n for n in options.thread_counts}
    turns = {f"{n}": _more_rounds(DEFAULT.engine(work, own), shape.rounds) for n, own in asked.items()}
    return _efficiency(f"{shape.name}, {DEFAULT.name}", turns, options, targets.EFFICIENCY)


def _more_rounds(engine: Engine, rounds: int) -> Callable[[], object]:
    federation = engine.federation()
    return lambda: engine.advance(federation, federation.state.round + rounds)


def _efficiency(
    what: str, turns: Mapping[str, Callable[[], object]], options: Options, target: Target | None
) -> Row:
    """Time on one thread over all threads' time together."""
    for turn in turns.values():
        turn()
    times = alternate(turns, options.many_turns)
    speedup = times.ratio("1", f"{options.cores}")
    low, high = times.spread("1", f"{options.cores}")
    detail = f"{speedup:.2f} times as fast as on one thread; {low:.2f}–{high:.2f}"
    title = f"{what}: efficiency of {options.cores} threads"
    return Row(SECTION, title, speedup / options.cores, "%", target, detail)


def _identity(shape: Shape, options: Options) -> Row:
    same = True
    for precision in PRECISIONS:
        work = precision.work(shape)
        results = [precision.engine(work, n).run(2 * shape.rounds) for n in (1, options.cores, None)]
        same = same and all(np.array_equal(results[0], other) for other in results[1:])
    detail = f"{2 * shape.rounds} rounds on 1 and {options.cores} threads, in three precisions"
    return Row(SECTION, f"{shape.name}: the same bits", float(same), "yes/no", targets.IDENTICAL, detail)
