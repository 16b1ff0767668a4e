"""Run a command, and end it when the process that started it dies: ``python watchdog.py PIDFILE COMMAND …``.

Standard input is a pipe whose other end only the starter holds. It closes when the starter closes it or dies,
even by ``kill -9``; then the command and everything it started are terminated, and killed after a while. The
exit status is the command's. This file is run by its path and imports little.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time

GRACE = 5.0  # seconds from SIGTERM to SIGKILL, for the command
LEFTOVER = 1.0  # for the processes it leaves behind
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process, where the system is Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def descendants() -> set[int]:
    """All processes below this one, orphans included: this process is their subreaper."""
    if sys.platform != "linux":
        return set()
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            with open(f"/proc/{int(entry)}/stat") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry))
    found, left = set[int](), [os.getpid()]
    while left:
        below = children.get(left.pop(), [])
        found.update(below)
        left += below
    return found


def send(processes: set[int], number: int) -> None:
    """Send a signal to those processes that still exist."""
    for pid in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def reap(child: subprocess.Popen[bytes]) -> None:
    """Reap exited children, orphans included."""
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, code = os.waitpid(-1, os.WNOHANG)
            if pid == child.pid:
                child.returncode = os.waitstatus_to_exitcode(code)
            if pid == 0:
                return


def main(pidfile: str, command: list[str]) -> int:
    """Run ``command`` until it ends or the starter does."""
    wake, alarm = os.pipe()
    os.set_blocking(alarm, False)
    signal.set_wakeup_fd(alarm)
    asked: list[int] = []
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, frame: asked.append(number))
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    child = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, preexec_fn=lambda: prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    )
    with open(pidfile, "w") as file:
        file.write(str(child.pid))
    told = set[int]()
    deadline = float("inf")
    while True:
        is_ending = deadline < float("inf")
        ready, _, _ = select.select([wake] if is_ending else [0, wake], [], [], 0.1 if is_ending else None)
        if wake in ready:
            os.read(wake, 4096)
        reap(child)
        if not is_ending:
            if child.returncode is None and not asked and not (0 in ready and not os.read(0, 4096)):
                continue
            deadline = time.monotonic() + GRACE
            send({child.pid} if child.returncode is None else set(), signal.SIGTERM)
        below = descendants() | ({child.pid} if child.returncode is None else set())
        if child.returncode is not None:
            if not below:
                return child.returncode if child.returncode >= 0 else 128 - child.returncode
            send(below - told, signal.SIGTERM)
            told |= below
            deadline = min(deadline, time.monotonic() + LEFTOVER)
        if time.monotonic() > deadline:
            send(below, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
