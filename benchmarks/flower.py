"""Flower's simulation engine around the same compiled local loop: what its transport costs a round."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.contenders import FLOWER
from benchmarks.options import Options
from benchmarks.row import Row
from benchmarks.timing import Times

SECTION = "Flower"
SHAPES = ("lasso", "EMNIST-10")
PATIENCE = 300  # seconds


def rows(options: Options) -> Iterator[Row]:
    """Times as fast as Flower, and its overhead."""
    for shape in SHAPES:
        title = f"{shape}: against Flower's simulation of the same local loop"
        if not FLOWER.is_installed:
            yield Row(SECTION, title, None, "×", detail=FLOWER.excuse)
            continue
        times = _measure(shape, 5 if options.quick else 20)
        flower, engine = (1e3 * times.median(name) for name in ("flower", "engine"))
        detail = f"{flower:.3g} ms a round, ours {engine:.3g}"
        yield Row(SECTION, title, times.ratio("flower", "engine"), "×", detail=detail)


def _measure(shape: str, repeats: int) -> Times:
    """Both in a process of their own, whose last line is the result."""
    with tempfile.TemporaryDirectory() as home:
        module = "benchmarks.contenders.flower_simulation"
        done = subprocess.run(
            [sys.executable, "-m", module, shape, str(repeats)],
            cwd=Path(__file__).parents[1],
            env={**os.environ, "FLWR_HOME": home},  # Flower writes into its home: one of ours
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
    if done.returncode:
        raise RuntimeError(f"Flower's simulation failed:\n{done.stderr[-3000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    return Times({name: found[name] for name in ("flower", "engine")})
