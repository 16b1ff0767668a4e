"""How the time of a round grows: fitted exponents of size; how memory grows: bytes beside the data."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

import unpooled as up
from benchmarks.options import Options
from benchmarks.precision import DEFAULT
from benchmarks.row import Row
from benchmarks.shapes import Shape
from benchmarks.timing import alternate

SECTION = "growth"


@dataclass(frozen=True)
class Size:
    """A softmax problem that is large enough for a round's fixed costs not to matter."""

    clients: int = 64
    cohort: int = 16
    features: int = 784
    classes: int = 10
    local_steps: int = 10

    def shape(self) -> Shape:
        """Its shape; 50 rows a client, minibatches of 25."""
        return Shape(
            name=str(self),
            make=lambda: up.datasets.sparse_classification(
                0, self.clients, 50, self.features, self.classes, dtype=np.float32
            ),
            problem=up.Problem(up.Softmax(self.classes), up.L1(1e-4)),
            algorithm=up.FastFedDA(
                mu=1e-3, gamma=250, a=np.inf, schedule="uniform", local_steps=self.local_steps
            ),
            cohort=self.cohort,
            batch_size=25,
            rounds=20,
        )


GROWING = {
    "cohort": ((8, 16, 32, 64), "the cohort"),
    "clients": ((64, 128, 256, 512), "the number of clients, the cohort the same"),
    "features": ((256, 512, 1024, 2048), "the features"),
    "classes": ((5, 10, 20, 40), "the classes"),
    "local_steps": ((5, 10, 20, 40), "the local steps"),
}


def rows(options: Options) -> Iterator[Row]:
    """An exponent for every size that can grow, and the memory a run needs."""
    for field, (values, words) in GROWING.items():
        shapes = [dataclasses.replace(Size(), **{field: value}).shape() for value in values]
        yield exponent(SECTION, f"a round ∝ {words}", values, round_seconds(shapes, options))
    yield memory(SECTION, MEMORY, (50, 100) if options.quick else (50, 100, 200, 400))


def round_seconds(shapes: Sequence[Shape], options: Options) -> list[float]:
    """The median time of a round of every shape."""
    turns: dict[str, Callable[[], object]] = {}
    for shape in shapes:
        engine = DEFAULT.engine(DEFAULT.work(shape))
        engine.run(shape.rounds)
        turns[shape.name] = lambda engine=engine, n=shape.rounds: engine.run(n)
    times = alternate(turns, options.repeats)
    return [times.median(shape.name) / shape.rounds for shape in shapes]


def exponent(section: str, words: str, sizes: Sequence[int], seconds: Sequence[float]) -> Row:
    """The slope of a time over a size, both as logarithms."""
    power = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    shown = ", ".join(f"{n}: {1e3 * t:.3g}" for n, t in zip(sizes, seconds, strict=True))
    return Row(section, f"time of {words}, to the power", power, "", detail=f"ms at {shown}")


MEMORY = """
import numpy as np, unpooled as up
n = int(sys.argv[1]) * 10**6 // (4 * 784)
rng = np.random.default_rng(0)
X = rng.random((n, 784), dtype=np.float32)
data = up.FederatedData.from_arrays(X, rng.integers(10, size=n), np.arange(n) // 100)
algorithm = up.FastFedDA(mu=1e-3, gamma=250, schedule="uniform")
problem = up.Problem(up.Softmax(10), up.L1(1e-4))
run = up.simulate(algorithm, problem, data, rounds=20, cohort=36, batch_size=25)
assert run.status == "completed", run.message
"""

# In a process of its own: the peak that the operating system counts, the data and all libraries included.
PEAK = """
import pathlib, resource, sys
{code}
if sys.platform == "linux":  # what getrusage tells there is that of the parent, where it is more
    text = pathlib.Path("/proc/self/status").read_text()
    peak = 1024 * int(text.split("VmHWM:")[1].split()[0])
else:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(peak)
"""


def memory(section: str, code: str, megabytes: Sequence[int]) -> Row:
    """The slope of a process's peak memory over the size of its data, which its argument asks for in MB."""
    peaks = [_peak(code, size) / 1e6 for size in megabytes]
    slope = float(np.polyfit(megabytes, peaks, 1)[0])
    shown = ", ".join(f"{n}: {peak:.0f}" for n, peak in zip(megabytes, peaks, strict=True))
    detail = f"peak in MB with so many MB of data, {shown}"
    return Row(section, "peak memory a byte of data", slope, "×", detail=detail)


def _peak(code: str, size: int) -> int:
    command = [sys.executable, "-c", PEAK.format(code=code), str(size)]
    return int(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
