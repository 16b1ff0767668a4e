"""Ctrl-C during parallel work: everything under way is saved, and --resume ends where it would have."""

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

UNPOOLED = Path(sys.executable).parent / "unpooled"


def wait_for(condition, seconds=120.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no process groups to send SIGINT to")
@pytest.mark.parametrize("to_all", [True, False], ids=["from the terminal", "to the parent only"])
def test_interrupted_in_parallel_and_resumed(tmp_path, to_all):
    command = [UNPOOLED, "reproduce", "lasso", "--methods", "Fast-FedDA", "--seeds", "4", "--jobs", "2"]
    command += ["--out", str(tmp_path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        wait_for(lambda: list(tmp_path.glob("lasso/Fast-FedDA-seed*.run")))
        (os.killpg if to_all else os.kill)(process.pid, signal.SIGINT)
        output, errors = process.communicate(timeout=120)
    assert process.returncode == 130, output + errors
    again = " ".join(output.split("To go on:")[1].split())
    assert again.startswith("unpooled reproduce lasso --seeds 4 --methods Fast-FedDA --out")
    assert again.endswith("--jobs 2 --resume")
    assert "Traceback" not in errors
    saved = [up.load(path) for path in tmp_path.glob("lasso/*.run")]
    assert any(run.status == "interrupted" for run in saved)
    done = subprocess.run([UNPOOLED, *again.split()[1:]], capture_output=True, text=True, check=True)
    assert "values agree with the expected ones" in done.stdout
    lasso = read("lasso")
    whole = lasso.run("Fast-FedDA", lasso.split(0), 0, rounds=2000)
    resumed = up.load(tmp_path / "lasso" / "Fast-FedDA-seed0.run")
    assert resumed.status == "completed"
    assert np.array_equal(resumed.w, whole.w)
