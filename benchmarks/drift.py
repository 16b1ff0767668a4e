"""What precision costs in accuracy: long runs against the same run in float64."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.agreement import relative_error
from benchmarks.options import Options
from benchmarks.precision import DEFAULT, DOUBLE, SINGLE
from benchmarks.row import Row

SECTION = "drift"


def rows(options: Options) -> Iterator[Row]:
    """The relative error of w on the EMNIST-10 shape, at more and more rounds of one run."""
    shape = options.shape("EMNIST-10")
    marks = (100,) if options.quick else (100, 1000, 15000)  # the last is the paper's run
    runs = {}
    for precision in (DOUBLE, DEFAULT, SINGLE):
        engine = precision.engine(precision.work(shape))
        runs[precision] = engine, engine.federation()
    for mark in marks:
        truth, *others = (engine.advance(federation, mark) for engine, federation in runs.values())
        for precision, w in zip((DEFAULT, SINGLE), others, strict=True):
            title = f"{shape.name}, {precision.name}: error in w after {mark} rounds"
            yield Row(SECTION, title, relative_error(w, truth), "", detail="relative, against float64")
