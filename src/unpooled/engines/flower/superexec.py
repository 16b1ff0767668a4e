"""Flower's SuperExec, with the tokens of the processes that it starts in files instead of on command lines.

A SuperLink starts ``flower-superexec``, which starts the server app and gives it a token with which it may
speak for the run. Everybody on a machine can read command lines. Both commands are found by name; so the
SuperLink is given a folder of commands in which ``flower-superexec`` is this file. It imports nothing of the
library, to start at once.
"""

from __future__ import annotations

import atexit
import importlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

EXECUTOR = "flwr.supercore.superexec.executor.subprocess_executor"


def without_tokens(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """An environment in which ``flower-superexec`` is this file, by way of a script in ``folder``."""
    if os.name != "posix":
        return dict(environment)
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "flower-superexec"
    command = shlex.join([sys.executable, "-P", __file__])
    script.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
    script.chmod(0o700)
    return {**environment, "PATH": f"{folder.absolute()}{os.pathsep}{environment['PATH']}"}


def hidden(command: Sequence[str], folder: Path) -> list[str]:
    """A command whose token is in a file of ``folder`` that only this user can read."""
    if "--token" not in command:
        return list(command)
    at = list(command).index("--token")
    number, path = tempfile.mkstemp(dir=folder)
    with os.fdopen(number, "w") as file:
        file.write(command[at + 1])
    return [*command[:at], "--token-file", path, *command[at + 2 :]]


def main() -> None:
    """Run Flower's command; its processes are started by ``hidden`` commands."""
    folder = Path(tempfile.mkdtemp(prefix="unpooled-tokens-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)

    def started(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(hidden(command, folder), **options)

    executor = importlib.import_module(EXECUTOR)
    executor.subprocess = SimpleNamespace(Popen=started, DEVNULL=subprocess.DEVNULL)  # type: ignore[attr-defined]
    importlib.import_module("flwr.supercore.cli").flower_superexec()


if __name__ == "__main__":
    main()
