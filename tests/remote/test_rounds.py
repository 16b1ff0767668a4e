"""Runs through desks have the bits of local ones, however clients are spread over desks."""

import numpy as np
import pytest

import unpooled as up
from tests.engines import test_touched, test_vacant
from tests.remote.desks import apart, scattered
from tests.runs import ALGORITHMS, FAST, NAMES, PROBLEM, go
from unpooled.algorithms.curvature import Curvature
from unpooled.engines.local.columns import layouts
from unpooled.engines.remote import client_server, engine
from unpooled.engines.remote.data import RemoteData
from unpooled.engines.remote.engine import Remote


def alike(local, remote):
    assert remote.status == "completed", remote.message
    for name, vector in local.state.arrays.items():
        assert np.array_equal(vector, remote.state.arrays[name]), name
    assert local.ledger == remote.ledger
    np.testing.assert_allclose(local.history["objective"], remote.history["objective"], rtol=1e-12)


@pytest.mark.parametrize("keeps", ["client", "server"])
@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=NAMES)
def test_every_algorithm(small, algorithm, keeps):
    data = RemoteData.of(scattered(small))
    local, remote = go(algorithm, small), go(algorithm, data, engine=Remote(keeps=keeps))
    alike(local, remote)
    if keeps == "server":
        assert np.array_equal(local.memory, remote.memory)


@pytest.mark.parametrize(
    "options",
    [{"cohort": None}, {"batch_size": None}, {"weighting": "unbiased"}, {"dtype": "float32"}],
    ids=str,
)
def test_however_clients_take_part(small, options):
    alike(go(FAST, small, **options), go(FAST, RemoteData.of(scattered(small)), **options))


@pytest.mark.parametrize("sparse", [False, True])
def test_columns_that_clients_do_not_have(sparse):
    data = test_touched.pair(weighted=False)[1] if sparse else test_vacant.images(weighted=False)
    remote = RemoteData.of(scattered(data))
    start = np.random.default_rng(3).standard_normal(test_touched.P)
    options = {"rounds": 6, "cohort": 5, "batch_size": 4, "seed": 1, "w0": start}
    runs = [up.simulate(FAST, test_touched.PROBLEM, rows, **options) for rows in (data, remote)]
    alike(*runs)


def test_non_zeros_of_several_outputs(monkeypatch):
    for module in (layouts, engine, client_server):
        monkeypatch.setattr(module, "SEVERAL", 2)
    data = test_vacant.images(lambda y: np.digitize(y, [-0.5, 0.5, 1.0]).astype(float), False, empty=0.8)
    assert isinstance(layouts.layout_of(data, 4), layouts.NonZeros)
    algorithm = up.FastFedDA(mu=0.01, gamma=10.0, local_steps=3)
    problem = up.Problem(up.Softmax(), up.L1(0.01), intercept=True)
    remote = RemoteData.of(scattered(data))
    assert remote.bind(problem).layout == problem.bind(data).layout
    runs = [up.simulate(algorithm, problem, rows, rounds=4, batch_size=4) for rows in (data, remote)]
    alike(*runs)


def test_numbers_chosen_from_the_curvature(small):
    local, remote = (go(up.FastFedDA(local_steps=4), rows) for rows in (small, apart(small)))
    assert local.settings["algorithm"] == remote.settings["algorithm"]
    alike(local, remote)


def test_curvature_of_sparse_rows():
    data = test_touched.pair()[1]
    remote = apart(data)
    problem = up.Problem(up.Logistic(), up.L1(0.1), intercept=True)
    here, there = (Curvature(problem, rows, 4) for rows in (data, remote))
    assert here.smoothness == pytest.approx(there.smoothness, rel=1e-14)
    assert here.strong_convexity == pytest.approx(there.strong_convexity, rel=1e-10, abs=1e-16)


def test_a_run_that_diverges_ends_as_it_does_here(small):
    algorithm = up.FedAvg(step=1e200, local_steps=4)
    local, remote = go(algorithm, small), go(algorithm, apart(small))
    assert local.status == remote.status == "diverged"
    assert local.message == remote.message


def test_a_run_is_resumed_on_another_engine(small):
    algorithm = ALGORITHMS[-1]
    data, whole = apart(small), go(algorithm, small, rounds=12)
    half = go(algorithm, data, rounds=6, engine=Remote(keeps="server"))
    half.settings["data"] = whole.settings["data"]  # the digest of a federation without rows is its own
    alike(whole, go(algorithm, small, rounds=12, resume=half))


def test_what_desks_keep_outlives_an_interrupted_server(small):
    algorithm, data = ALGORITHMS[-1], apart(small)
    whole = go(algorithm, small, rounds=12)
    half = go(algorithm, data, rounds=6)
    assert half.memory.dtype == np.int64  # the rounds that counted; what clients know stays with them
    alike(whole, go(algorithm, data, rounds=12, resume=half))


def test_a_plain_loss_needs_trust(small):
    class Mine:
        def value(self, w, X, y):
            return float(np.mean(np.square(X @ w - y)))

        def gradient(self, w, X, y):
            return 2.0 * X.T @ (X @ w - y) / len(y)

    with pytest.raises(ValueError, match=r"Mine is not one of the library's own classes"):
        go(FAST, apart(small), problem=up.Problem(Mine(), PROBLEM.penalty))
