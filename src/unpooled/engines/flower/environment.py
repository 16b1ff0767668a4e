"""Flower as we use it: its modules, its commands, and the environment of the processes we start.

Nothing leaves such a process that a study did not ask for: no telemetry, no update check, no installation of
dependencies from the internet. Traffic on loopback bypasses proxies.
"""

from __future__ import annotations

import functools
import importlib
import ipaddress
import os
import shutil
import sys
from pathlib import Path
from typing import Any

QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
}

LOOPBACK = "localhost,127.0.0.1,::1"  # hosts that bypass a proxy of the environment
POLL_SECONDS = 0.25  # how often a node looks for work; Flower's default is 1 s


def environment(home: Path, poll_seconds: float = POLL_SECONDS) -> dict[str, str]:
    """This process's environment, quiet, with a Flower home of ours.

    ``poll_seconds`` is how often a SuperNode or SuperLink looks whether there is a process to start: each
    look is a request on loopback, so that many nodes on one machine want a longer one.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    ours = {"FLWR_HOME": str(home), "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": str(poll_seconds), "PATH": path}
    direct = ",".join(filter(None, [os.environ.get("NO_PROXY") or os.environ.get("no_proxy"), LOOPBACK]))
    return {**os.environ, **QUIET, **ours, "NO_PROXY": direct, "no_proxy": direct}


def be_quiet() -> None:
    """Make this process quiet, before it imports flwr or starts Ray; what the user has set stays."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)


def command(name: str) -> str:
    """The path of one of Flower's commands, those beside this Python first."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        raise FileNotFoundError(f"there is no command {name}: pip install 'unpooled[flower]'")
    return found


def is_loopback(host: str) -> bool:
    """Whether a host is this machine and nothing else."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@functools.cache
def module(name: str) -> Any:
    """A module of flwr, imported when it is first needed."""
    be_quiet()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "flwr":
            raise
        raise ModuleNotFoundError(
            "Flower is not installed: pip install 'unpooled[flower]'", name=error.name
        ) from error


def app() -> Any:
    """``flwr.app``: messages and records."""
    return module("flwr.app")


def serverapp() -> Any:
    """``flwr.serverapp``."""
    return module("flwr.serverapp")


def clientapp() -> Any:
    """``flwr.clientapp``."""
    return module("flwr.clientapp")
