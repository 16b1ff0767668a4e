"""Processes with a mark in their environment: all that a test has started, whoever is their parent now."""

import contextlib
import threading
import time
from pathlib import Path


def runs(pid):
    """Whether a process is there and not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def marked(mark):
    """The command and the environment of every process with this mark that is not a zombie, by its id."""
    found = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if not entry.name.isdigit():
                continue
            environ = (entry / "environ").read_bytes().decode(errors="replace").split("\0")
            if any(mark in variable for variable in environ) and runs(entry.name):
                command = (entry / "cmdline").read_text().replace("\0", " ")
                found[int(entry.name)] = command, dict(each.split("=", 1) for each in environ if "=" in each)
    return found


def commands(mark):
    """The commands of those processes."""
    return [command for command, _ in marked(mark).values()]


@contextlib.contextmanager
def watched(mark):
    """Fills what it gives with every such process that is there for longer than a moment."""
    seen, over = {}, threading.Event()

    def watch():
        while not over.wait(0.2):
            seen.update(marked(mark))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def until_none(mark, seen=()):
    """Wait for the end of those who end by themselves, a moment after they were told to.

    Those that were ``seen`` count too: who changes its title may lose its mark.
    """
    deadline = time.monotonic() + 60.0
    while left := [*commands(mark), *(pid for pid in seen if runs(pid))]:
        assert time.monotonic() < deadline, left
        time.sleep(0.05)
