"""The Ray engine on a real cluster of this machine: the same bits, also when an actor dies."""

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import numpy as np
import pytest

import unpooled as up
from tests.engines import test_touched, test_vacant
from tests.leftovers import leftovers_ignored
from tests.own_members import NegativeBinomial, SparseGroupLasso
from tests.processes import marked, until_none, watched
from tests.runs import ALGORITHMS, FAST, NAMES, PROBLEM, go, same_bits

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def engine():
    mark = uuid.uuid4().hex
    with pytest.MonkeyPatch.context() as patch, leftovers_ignored():
        patch.setenv("UNPOOLED_TEST_RAY", mark)
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_worker_niceness", "0")  # at Ray's 15, actors on a busy machine compile for minutes
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        ray.init(
            address="local",
            num_cpus=2,
            include_dashboard=False,
            object_store_memory=80 * 2**20,
            log_to_driver=False,
            logging_level="ERROR",
        )
    started = marked(mark)
    try:
        with up.engines.Ray(actors=2) as engine:
            yield engine
        assert ray.is_initialized()  # it was not started by the engine, which must not end it
    finally:
        with leftovers_ignored():
            ray.shutdown()
    assert started
    until_none(mark, started)


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=NAMES)
def test_every_algorithm_has_the_local_bits(engine, small, algorithm):
    same_bits(go(algorithm, small), go(algorithm, small, engine=engine))


def test_a_run_ends_with_the_local_certificate(engine, small):
    here, there = (go(FAST, small, certify=True, engine=e) for e in (up.engines.Local(), engine))
    assert there.certificate == here.certificate
    assert there.ledger == here.ledger


def test_sparse_rows_weights_and_occupied_columns(engine):
    for data in (test_touched.pair()[1], test_vacant.images()):
        here, there = (test_touched.go(FAST, data, engine=e) for e in (up.engines.Local(), engine))
        same_bits(here, there)
        assert here.ledger == there.ledger


def test_exact_solvers(engine, small):
    here, there = up.solve(PROBLEM, small), up.solve(PROBLEM, small, engine=engine)
    np.testing.assert_allclose(here.w, there.w, rtol=1e-10, atol=1e-12)
    here, there = (up.cross_validate(PROBLEM, small, folds=3, n_lambdas=4, engine=e) for e in (None, engine))
    np.testing.assert_allclose(here.losses, there.losses, rtol=1e-9)


def test_a_loss_and_a_penalty_that_offer_everything(engine):
    rows = np.random.default_rng(1).standard_normal((90, 6))
    data = up.FederatedData.from_arrays(rows, np.floor(np.exp(rows[:, 0])), np.arange(90) % 3)
    problem = up.Problem(NegativeBinomial(2.0), SparseGroupLasso(0.02, (0, 0, 1, 1, 2, 2)))
    here, there = (up.solve(problem, data, engine=e) for e in (None, engine))
    np.testing.assert_allclose(here.w, there.w, rtol=1e-9, atol=1e-12)
    algorithm = up.FedMiD(step=0.05, local_steps=2)
    here, there = (up.simulate(algorithm, problem, data, rounds=3, engine=e) for e in (None, engine))
    same_bits(here, there)


def test_a_loss_of_ones_own_goes_along(engine, small):
    class Quartic:
        def value(self, w, X, y):
            return float(np.mean((X @ w - y) ** 4))

        def gradient(self, w, X, y):
            return 4.0 * X.T @ (X @ w - y) ** 3 / len(y)

    problem = up.Problem(Quartic(), up.L1(0.1))
    algorithm = up.FedMiD(step=1e-6, local_steps=4)
    same_bits(
        go(algorithm, small, problem=problem, rounds=2),
        go(algorithm, small, problem=problem, rounds=2, engine=engine),
    )


@pytest.mark.parametrize("kill", ["ray", "signal"])
def test_an_actor_that_dies_is_started_again(engine, small, kill):
    algorithm = ALGORITHMS[-1]  # whose clients have a memory to lose
    actors = engine.data(small).transport.actors
    doomed = actors["actor 1"]
    if kill == "ray":
        ray.kill(doomed)
    else:
        os.kill(ray.get(doomed.process.remote()), signal.SIGKILL)
    same_bits(go(algorithm, small), go(algorithm, small, engine=engine))
    assert actors["actor 1"] is not doomed


@pytest.mark.usefixtures("at_a_terminal")
def test_ctrl_c_leaves_a_run_that_goes_on_elsewhere(engine, small, tmp_path):
    scaffold, file = ALGORITHMS[-1], tmp_path / "run"

    def press():
        deadline = time.monotonic() + 400  # on a busy machine, actors compile for longer than a minute
        while not file.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    run = go(scaffold, small, rounds=10**6, every=5, checkpoint=file, engine=engine)
    thread.join()
    assert run.status == "interrupted"
    done = run.state.round
    rest = go(scaffold, small, rounds=done + 3, every=5, resume=run)
    same_bits(go(scaffold, small, rounds=done + 3, every=5), rest)
    again = go(scaffold, small, rounds=done + 3, every=5, resume=run, engine=engine)
    same_bits(rest, again)


# Starts a Ray of the engine's own; another process joins it, and leaves it as it was.
OWN = """
import subprocess, sys
import unpooled as up
from tests.runs import FAST, go

data = up.datasets.sparse_regression(seed=2, n_clients=4, n_rows=20, n_features=10, sparsity=3)
with up.engines.Ray(actors=2, address=sys.argv[1] or None) as engine:
    run = go(FAST, data, rounds=2, cohort=3, engine=engine)
    if not sys.argv[1]:
        import ray
        address = ray.get_runtime_context().gcs_address
        subprocess.run([sys.executable, "-c", sys.argv[2], address], check=True)
        again = go(FAST, data, rounds=2, cohort=3, engine=engine)
        assert again.w.tobytes() == run.w.tobytes()
        assert ray.is_initialized()
assert run.w.tobytes() == go(FAST, data, rounds=2, cohort=3).w.tobytes()
print("the same bits")
"""


def test_a_ray_of_ones_own_is_quiet_and_ends_with_the_engine():
    mark = uuid.uuid4().hex
    ours = {"RAY_USAGE_STATS_ENABLED": "1", "UNPOOLED_TEST_RAY": mark}  # whatever is set here
    with watched(mark) as seen:
        done = subprocess.run(
            [sys.executable, "-c", OWN, "", OWN],
            cwd=Path(__file__).parents[2],
            env={**os.environ, **ours},
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("the same bits") == 2
    until_none(mark, seen)
    started = [each for each in seen.values() if "raylet" in each[0] or "gcs_server" in each[0]]
    assert started
    for command, variables in started:
        assert variables["RAY_USAGE_STATS_ENABLED"] == "0", command


def test_what_is_refused():
    with pytest.raises(ValueError, match="actors must be a whole number of at least 1, got 0"):
        up.engines.Ray(actors=0)
