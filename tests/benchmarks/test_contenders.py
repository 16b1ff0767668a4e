"""Every contender does the same work as the engine: only then do its times mean anything."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import unpooled as up
from benchmarks.agreement import DisagreementError, check
from benchmarks.contenders import CONTENDERS, FLOWER
from benchmarks.contenders.engine import Engine
from benchmarks.images import characters
from benchmarks.work import SEED, Work


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("entry", CONTENDERS, ids=lambda entry: entry.name)
def test_contenders_agree_with_the_engine(entry, threads, work):
    if not entry.is_installed:
        pytest.skip(entry.excuse)
    w = entry.load()(work, min(threads, os.cpu_count() or 1)).run(work.n_rounds)
    check(entry.name, w, Engine(work).run(work.n_rounds), 1e-12)


def test_the_engine_of_the_bench_is_that_of_simulate(work):
    shape, data = work.shape, work.data
    run = up.simulate(
        shape.algorithm,
        shape.problem,
        data,
        rounds=work.n_rounds,
        cohort=shape.cohort,
        batch_size=shape.batch_size,
        seed=SEED,
        w0=shape.start(data),
    )
    ours = Engine(work).run(work.n_rounds)
    assert np.array_equal(ours.ravel(), run.w.ravel())


@pytest.mark.slow
def test_flower_agrees_with_the_engine(tmp_path):
    """The measurement itself refuses to return where the results differ."""
    if not FLOWER.is_installed:
        pytest.skip(FLOWER.excuse)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.contenders.flower_simulation", "lasso", "1"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "FLWR_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["error"] <= 1e-10
    assert len(found["flower"]) == len(found["engine"]) == 1


def test_a_wrong_result_is_refused():
    truth = np.ones((4, 1))
    with pytest.raises(DisagreementError, match=r"PyTorch differs from the engine by 1\.0e-03"):
        check("PyTorch", 1.001 * truth, truth, 1e-4)
    with pytest.raises(DisagreementError):
        check("JAX", np.full((4, 1), np.nan), truth, 1e-4)


def test_clients_smaller_than_a_minibatch_are_refused(work):
    small = up.FederatedData.from_arrays(work.data.X[:5], work.data.y[:5], [0, 0, 0, 1, 1])
    with pytest.raises(ValueError, match="fewer rows than a minibatch"):
        Work(work.shape, small, 1)


def test_characters_are_mostly_empty_paper():
    data = characters(seed=0, n_clients=40, mean_rows=30, n_classes=10)
    assert data.n_clients == 40
    assert data.dtype == np.float32
    assert 0.75 < np.mean(data.X == 0) < 0.85
    blocks = data.X.reshape(data.n_rows, -1, 4)
    assert np.mean((blocks == 0).all(axis=2)) > 0.6  # were the zeros independent: 0.41
    assert 0 <= data.X.min() < data.X.max() <= 1
    assert set(np.unique(data.y)) == set(range(10))
