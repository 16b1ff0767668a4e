"""The machine and the software a table was measured with."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

PACKAGES = (
    "unpooled",
    "numpy",
    "scipy",
    "numba",
    "scikit-learn",
    "jax",
    "torch",
    "flwr",
    "ray",
    "celer",
    "skglm",
)


def facts() -> dict[str, Any]:
    """As plain data."""
    blas = {
        f"{pool['internal_api']} {pool['version']}"
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    }
    return {
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory": _memory(),
        "load before": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else 0.0,
        "system": platform.platform(),
        "python": platform.python_version(),
        "BLAS": ", ".join(sorted(blas)),
        **{name: found for name in PACKAGES if (found := _version(name))},
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9:.0f} GB"
    except (AttributeError, ValueError, OSError):
        return ""


def _commit() -> str:
    git = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(git, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
