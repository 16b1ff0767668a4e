"""Aggregates and privacy where the rows are elsewhere: the bits of the local engine."""

import numpy as np
import pytest
from scipy import sparse

import unpooled as up
from unpooled.engines.remote.client_server import ClientServer
from unpooled.engines.remote.data import RemoteData
from unpooled.engines.remote.engine import Remote
from unpooled.engines.remote.messages import Direct, Failure

pytestmark = pytest.mark.filterwarnings("ignore:noise_seed")
PROBLEM = up.Problem(up.Squared(), up.L1(0.02), intercept=True)
SEEDED = up.CentralDP(clip=2.0, noise_multiplier=1.0, delta=1e-4, noise_seed=1)


class Deserted(Direct):
    """A transport that finds holder 2 gone from the first round on."""

    def exchange(self, requests):
        replies = super().exchange(requests)
        if any(request.kind == "train" for request in requests.values()) and 2 in replies:
            replies[2] = Failure("it is gone")
        return replies


def sites(form):
    """Eight clients with some features each, all here; and the same at four holders."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((160, 30)) * (rng.random((160, 30)) < 0.2)
    y, clients = X[:, :3].sum(axis=1) + 0.3, np.repeat(np.arange(8), 20)
    desks = {}
    for holder in range(4):
        own = np.isin(clients, [2 * holder, 2 * holder + 1])
        desks[holder] = ClientServer(up.FederatedData.from_arrays(form(X[own]), y[own], clients[own]))
    return up.FederatedData.from_arrays(form(X), y, clients), desks


def go(data, algorithm, **options):
    options = {"rounds": 6, "cohort": 6, "batch_size": 5, **options}
    return up.simulate(algorithm, PROBLEM, data, **options)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize(
    "options",
    [{"aggregate": up.TrimmedMean(0.2)}, {"aggregate": up.CoordinateMedian()}, {"privacy": SEEDED}],
    ids=str,
)
def test_bits_are_those_of_the_local_engine(form, options):
    here, desks = sites(form)
    for algorithm in (
        up.FedDA(step=0.05, local_steps=2),
        up.Scaffold(step=0.01, local_steps=4, control="value"),
    ):
        local = go(here, algorithm, **options)
        elsewhere = go(RemoteData.of(Direct(desks)), algorithm, engine=Remote(keeps="server"), **options)
        assert np.array_equal(local.w, elsewhere.w)
        assert local.intercept == elsewhere.intercept
        assert np.array_equal(local.memory, elsewhere.memory)
        assert local.privacy == elsewhere.privacy


def test_who_is_missing_counts_as_zero_under_privacy():
    """With larger weights for the others the noise would be too small for what one of them can move."""
    here, desks = sites(np.asarray)
    exact = up.CentralDP(clip=1e9, noise_multiplier=1e-20, delta=1e-4, noise_seed=1)
    fedavg = up.FedAvg(step=0.05, local_steps=1)
    options = {"rounds": 1, "cohort": None, "batch_size": None, "privacy": exact}
    whole = go(here, fedavg, **options)
    some = go(RemoteData.of(Deserted(desks)), fedavg, engine=Remote(minimum=3, retries=0), **options)
    assert some.status == "completed"
    present = np.flatnonzero(~np.isin(np.arange(8), [4, 5]))
    alone = [
        go(up.FederatedData.from_clients({k: (c.X, c.y)}), fedavg, **{**options, "privacy": None})
        for k, c in enumerate(here)
        if k in present
    ]
    np.testing.assert_allclose(some.w, sum(run.w for run in alone) / 8, atol=1e-12)
    assert not np.allclose(some.w, whole.w)
