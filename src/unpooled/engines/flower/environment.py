"""The environment of every process of Flower that we start, and where its commands are.

Nothing leaves such a process that a study did not ask for: no telemetry, no look for updates, no installation
of dependencies from the internet. What they say to each other on loopback goes through no proxy.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
}

LOOPBACK = "localhost,127.0.0.1,::1"  # a proxy of the environment is not for this machine's own processes
POLL_SECONDS = 0.25  # how often a node looks for a message it has taken in; Flower's own is 1 s


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
    """The same for this process, before it imports flwr or starts Ray; what the user has set stays."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)


def command(name: str) -> str:
    """The path of one of Flower's commands, those beside this Python first."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        raise FileNotFoundError(f"there is no command {name}: pip install 'unpooled[flower]'")
    return found
