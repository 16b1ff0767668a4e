"""Ctrl-C during parallel work: everything under way is saved, and --resume ends where it would have."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import unpooled as up
from unpooled.experiments import read

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no process groups to send SIGINT to")

UNPOOLED = Path(sys.executable).parent / "unpooled"

# Where the tests run in the background, SIGINT may be ignored, which a child inherits: it starts afresh here.
AT_A_TERMINAL = (
    "import os, signal, sys as s; signal.signal(2, signal.SIG_DFL); os.execv(s.argv[1], s.argv[1:])"
)


def wait_for(condition, seconds=120.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@contextlib.contextmanager
def lasso(directory):
    """``unpooled reproduce lasso`` with two workers, in a process group that ends with the block."""
    command = [sys.executable, "-c", AT_A_TERMINAL, UNPOOLED, "reproduce", "lasso", "--out", str(directory)]
    command += ["--methods", "Fast-FedDA", "--seeds", "4", "--jobs", "2"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def stop_midway(directory, to_all):
    """What it printed when it was interrupted after its first run was saved, and the runs it left."""
    with lasso(directory) as process:
        wait_for(lambda: list(directory.glob("lasso/Fast-FedDA-seed*.run")))
        (os.killpg if to_all else os.kill)(process.pid, signal.SIGINT)
        output, errors = process.communicate(timeout=120)
    assert process.returncode == 130, output + errors
    assert "Traceback" not in errors
    return output, [up.load(path) for path in directory.glob("lasso/*.run")]


@pytest.mark.slow
@pytest.mark.parametrize("to_all", [True, False], ids=["from the terminal", "to the parent only"])
def test_interrupted_in_parallel_and_resumed(tmp_path, to_all):
    for attempt in range(3):  # the signal may find both workers between two runs, rarely
        folder = tmp_path / str(attempt)
        output, saved = stop_midway(folder, to_all)
        if any(run.status == "interrupted" for run in saved):
            break
    else:
        pytest.fail("no run that was under way was saved")
    again = " ".join(output.split("To resume:")[1].split())
    assert again.startswith("unpooled reproduce lasso --seeds 4 --methods Fast-FedDA --out")
    assert again.endswith("--jobs 2 --resume")
    done = subprocess.run([UNPOOLED, *again.split()[1:]], capture_output=True, text=True, check=True)
    assert "values agree with the expected ones" in done.stdout
    experiment = read("lasso")
    whole = experiment.run("Fast-FedDA", experiment.split(0), 0, rounds=2000)
    resumed = up.load(folder / "lasso" / "Fast-FedDA-seed0.run")
    assert resumed.status == "completed"
    assert np.array_equal(resumed.w, whole.w)


@pytest.mark.slow
@pytest.mark.parametrize("after", [0.0, 0.3, 0.6, 0.9])
def test_interrupted_while_the_workers_are_born(tmp_path, after):
    """A worker that died of the signal half awake once left its siblings waiting for ever."""
    with lasso(tmp_path) as process:
        wait_for((tmp_path / "lasso").exists)
        time.sleep(after)
        os.killpg(process.pid, signal.SIGINT)
        output, errors = process.communicate(timeout=120)
    assert process.returncode == 130, output + errors
    assert "Traceback" not in errors
