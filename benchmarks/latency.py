"""What a user waits for before the first round: import, the first fit ever, the first fit of a process."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from benchmarks import targets
from benchmarks.options import Options
from benchmarks.row import Row

SECTION = "latency"

IMPORT = """
import json, sys, time
began = time.perf_counter()
import unpooled
print(json.dumps({"seconds": time.perf_counter() - began, "numba": "numba" in sys.modules}))
"""

# The data are small: what counts is compiling, or reading what was compiled.
FIT = """
import json, time
import unpooled as up
if {softmax}:
    data = up.datasets.sparse_classification(0, 16, 50, 64, 10, dtype="float32")
    problem = up.Problem(up.Softmax(10), up.L1(1e-4))
else:
    data = up.datasets.sparse_regression(0, 16, 50, 64, 8)
    problem = up.Problem(up.Squared(), up.L1(0.03))
algorithm = up.FastFedDA(mu=0.1, gamma=250, schedule="uniform")
began = time.perf_counter()
run = up.simulate(algorithm, problem, data, rounds=10, cohort=10, batch_size=10)
assert run.status == "completed", run.message
print(json.dumps({{"seconds": time.perf_counter() - began}}))
"""


def rows(options: Options) -> Iterator[Row]:
    """Seconds in fresh processes."""
    imports = [_fresh(IMPORT) for _ in range(options.repeats)]
    seconds = statistics.median(found["seconds"] for found in imports)
    yield Row(SECTION, "import unpooled", seconds, "s", targets.IMPORT, f"median of {len(imports)} processes")
    free = not any(found["numba"] for found in imports)
    yield Row(SECTION, "import without numba", float(free), "yes/no", targets.IDENTICAL)
    for name, softmax in (("lasso, float64", False), ("softmax, float32 data", True)):
        code = FIT.format(softmax=softmax)
        with tempfile.TemporaryDirectory() as cache:
            cold = _fresh(code, cache)["seconds"]
            warm = statistics.median(_fresh(code, cache)["seconds"] for _ in range(3))
        yield Row(SECTION, f"first fit ever, {name}", cold, "s", targets.COLD_FIT, "compiles, once")
        yield Row(
            SECTION,
            f"first fit of a process, {name}",
            warm,
            "s",
            targets.WARM_FIT,
            "import of numba included",
        )


def _fresh(code: str, cache: str | None = None) -> Any:
    """What the code prints in a new process, with a cache of its own for compiled code."""
    environment = dict(os.environ) if cache is None else {**os.environ, "UNPOOLED_CACHE_DIR": cache}
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment
    )
    return json.loads(done.stdout)
