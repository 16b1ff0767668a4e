"""The Ray engine on a real cluster of this machine: the same bits, also when an actor dies."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import unpooled as up
from tests.engines import test_touched, test_vacant
from tests.leftovers import leftovers_ignored
from tests.runs import ALGORITHMS, FAST, NAMES, PROBLEM, go, same_bits

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def engine():
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    with leftovers_ignored():
        ray.init(
            address="local",
            num_cpus=2,
            include_dashboard=False,
            object_store_memory=80 * 2**20,
            log_to_driver=False,
            logging_level="ERROR",
        )
    try:
        with up.engines.Ray(actors=2) as engine:
            yield engine
        assert ray.is_initialized()  # it was not started by the engine, which must not end it
    finally:
        with leftovers_ignored():
            ray.shutdown()


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=NAMES)
def test_every_algorithm_has_the_local_bits(engine, small, algorithm):
    same_bits(go(algorithm, small), go(algorithm, small, engine=engine))


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


def test_ctrl_c_leaves_a_run_that_goes_on_elsewhere(engine, small, tmp_path):
    scaffold, file = ALGORITHMS[-1], tmp_path / "run"

    def press():
        deadline = time.monotonic() + 60
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


def test_what_is_refused():
    with pytest.raises(ValueError, match="actors must be a whole number of at least 1, got 0"):
        up.engines.Ray(actors=0)
