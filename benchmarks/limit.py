"""The engine against the machine's own matrix product, measured in the same turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from threadpoolctl import ThreadpoolController

from benchmarks import targets
from benchmarks.options import Options
from benchmarks.precision import PRECISIONS, Precision
from benchmarks.row import Row
from benchmarks.shapes import Shape
from benchmarks.timing import alternate

SECTION = "limit"
SIZE = 1536  # of the square matrices whose product is the peak


def rows(options: Options) -> Iterator[Row]:
    """The share of the gemm peak that every shape reaches, on one and on all threads.

    Low rank is there for completeness: its time goes into singular values, which do not count here.
    """
    for shape in options.shapes:
        for precision in PRECISIONS:
            yield from _share(shape, precision, options)


def _share(shape: Shape, precision: Precision, options: Options) -> Iterator[Row]:
    work = precision.work(shape)
    turns: dict[str, Callable[[], object]] = {}
    for threads in options.thread_counts:
        engine = precision.engine(work, threads)
        engine.run(shape.rounds)
        turns[f"engine {threads}"] = lambda engine=engine: engine.run(shape.rounds)
        turns[f"gemm {threads}"] = matrix_product(precision.data, threads)
        turns[f"gemm {threads}"]()
    times = alternate(turns, options.turns)
    done, product = work.flops * shape.rounds, 2.0 * SIZE**3
    gemm = "sgemm" if precision.data == "float32" else "dgemm"
    for threads in options.thread_counts:
        share = times.ratio(f"gemm {threads}", f"engine {threads}") * done / product
        reached = done / times.median(f"engine {threads}") / 1e9
        peak = product / times.median(f"gemm {threads}") / 1e9
        counted = f"on {threads} thread{'s' if threads > 1 else ''}"
        whole = precision.states == precision.data and threads == options.cores
        target = targets.SHARE_OF_PEAK.get(shape.name) if whole and gemm == "sgemm" else None
        detail = f"{reached:.0f} of {peak:.0f} GFLOP/s, products with zero pixels counted"
        yield Row(SECTION, f"{shape.name}, {precision.name}: of {gemm} {counted}", share, "%", target, detail)


def matrix_product(dtype: str, threads: int) -> Callable[[], object]:
    """A turn of the machine's own matrix product."""
    rng = np.random.default_rng(0)
    A, B = (rng.standard_normal((SIZE, SIZE)).astype(dtype) for _ in range(2))
    out, blas = np.empty_like(A), ThreadpoolController()

    def turn() -> None:
        with blas.limit(limits=threads, user_api="blas"):
            np.matmul(A, B, out=out)

    return turn
