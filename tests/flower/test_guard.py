"""Processes end with whoever started them, and take along what they started."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.processes import runs
from unpooled.engines.flower.environment import LOOPBACK, QUIET, command, environment
from unpooled.engines.flower.processes import ChildProcess, ProcessError

# A stubborn tree: a process that ignores SIGTERM, whose child sits in a session of its own.
TREE = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print("tree", os.getpid(), child.pid, flush=True)
time.sleep(600)
"""


def until(is_so, seconds=30.0):
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def pids(log):
    until(lambda: log.exists() and "tree" in log.read_text())
    return [int(word) for word in log.read_text().split("tree")[1].split()[:2]]


def start(folder, code=TREE, name="tree"):
    return ChildProcess(name, [sys.executable, "-c", code], folder, environment(folder))


def test_stopping_takes_along_what_ignores_it(tmp_path):
    with start(tmp_path) as process:
        tree = pids(process.log)
        assert process.pid == tree[0]
        assert process.returncode is None
    assert process.returncode == 128 + signal.SIGKILL
    assert not any(map(runs, tree))


def test_nothing_is_left_when_the_starter_is_killed(tmp_path):
    code = f"""
import sys, time
from pathlib import Path
from tests.flower.test_guard import start
process = start(Path({str(tmp_path)!r}))
time.sleep(600)
"""
    starter = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[2])
    tree = pids(tmp_path / "tree.log")
    os.kill(starter.pid, signal.SIGKILL)
    starter.wait()
    until(lambda: not any(map(runs, tree)))


def test_leftovers_go_when_the_process_ends(tmp_path):
    code = TREE.removesuffix("time.sleep(600)\n") + "sys.exit(3)\n"
    process = start(tmp_path, code)
    tree = pids(process.log)
    assert process.wait(30) == 3
    assert not any(map(runs, tree))


def test_killing_is_seen(tmp_path):
    process = start(tmp_path, "import time; time.sleep(600)")
    process.kill()
    assert process.returncode == 128 + signal.SIGKILL


def test_who_does_not_start_says_why(tmp_path):
    with (
        start(tmp_path, "raise SystemExit('no such certificate')") as process,
        pytest.raises(ProcessError, match=r"tree ended with exit status 1(.|\n)*no such certificate"),
    ):
        process.until(lambda: False, 30.0, "start")


def test_who_takes_too_long_is_named(tmp_path):
    with (
        start(tmp_path, "import time; time.sleep(600)") as process,
        pytest.raises(ProcessError, match="tree did not connect within 0 s"),
    ):
        process.until(lambda: False, 0.0, "connect")


def test_the_environment_is_quiet(tmp_path):
    ours = environment(tmp_path)
    assert ours["FLWR_TELEMETRY_ENABLED"] == "0"
    assert ours["FLWR_DISABLE_UPDATE_CHECK"] == "1"
    assert ours["FLWR_HOME"] == str(tmp_path)
    assert QUIET.items() <= ours.items()


def test_loopback_goes_through_no_proxy(tmp_path, monkeypatch):
    for given, ours in (("", LOOPBACK), ("intra.net", f"intra.net,{LOOPBACK}")):
        monkeypatch.setenv("NO_PROXY", given)
        assert environment(tmp_path)["NO_PROXY"] == environment(tmp_path)["no_proxy"] == ours


def test_a_missing_command_says_what_to_install():
    with pytest.raises(FileNotFoundError, match=r"unpooled\[flower\]"):
        command("flower-no-such-command")
