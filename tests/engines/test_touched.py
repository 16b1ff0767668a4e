"""Sparse rows: the same results as on dense ones, and what is sent is what was touched."""

import numpy as np
import pytest
from scipy import sparse

import unpooled as up
from tests.runs import ALGORITHMS, FAST, NAMES, same_bits
from unpooled.engines.local import engine as local
from unpooled.kernels import draws as sampling

P, CLIENTS = 60, 12
PROBLEM = up.Problem(up.Squared(), up.L1(0.02), intercept=True)


def rows(seed=0):
    """Ragged clients; a feature that nobody has, one that only one client has, a row without any."""
    rng = np.random.default_rng(seed)
    clients = np.sort(rng.integers(0, CLIENTS, 150))
    X = rng.standard_normal((150, P)) * (rng.random((150, P)) < 0.08)
    X[:, 17] = 0
    X[:, 18] = np.where(clients == 3, X[:, 18] + 1, 0)
    X[5] = 0
    return X, clients, rng


def pair(target=None, weighted=True):
    X, clients, rng = rows()
    y = X[:, :6].sum(axis=1) + 0.1 * rng.standard_normal(len(X)) + 0.3
    y = y if target is None else target(y)
    s = rng.random(len(X)) + 0.5 if weighted else None
    return [up.FederatedData.from_arrays(M, y, clients, s) for M in (X, sparse.csr_array(X))]


def go(algorithm, data, problem=PROBLEM, **options):
    shape = problem.bind(data).layout.shape
    w0 = np.random.default_rng(3).standard_normal(shape)  # coordinates that are not touched have to move
    options = {"rounds": 12, "cohort": 5, "batch_size": 4, "seed": 1, "w0": w0, **options}
    return up.simulate(algorithm, problem, data, **options)


def alike(algorithm, problem=PROBLEM, data=None, tolerance=1e-12, **options):
    dense, csr = (go(algorithm, part, problem, **options) for part in data or pair())
    assert dense.status == csr.status == "completed", csr.message
    np.testing.assert_allclose(csr.w, dense.w, rtol=tolerance, atol=tolerance)
    if problem.intercept:
        np.testing.assert_allclose(csr.intercept, dense.intercept, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(csr.history["objective"], dense.history["objective"], rtol=100 * tolerance)
    return csr


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=NAMES)
def test_csr_equals_dense_and_threads_change_no_bit(algorithm):
    data = pair()
    alike(algorithm, data=data)
    one, two = (go(algorithm, data[1], engine=up.engines.Local(threads=t)) for t in (1, 2))
    same_bits(one, two)


@pytest.mark.parametrize(
    "options",
    [{"cohort": None}, {"batch_size": None}, {"batch_size": 100}, {"weighting": "unbiased"}, {"w0": None}],
    ids=str,
)
def test_csr_equals_dense_however_clients_take_part(options):
    alike(FAST, **options)


@pytest.mark.parametrize(
    "penalty",
    [up.ElasticNet(0.05, 0.5), up.Zero(), up.GroupL2(0.05, [[i, i + 1] for i in range(0, P, 2)])],
    ids=lambda penalty: type(penalty).__name__,
)
def test_csr_equals_dense_for_every_kind_of_penalty(penalty):
    alike(FAST, up.Problem(up.Squared(), penalty))


def test_csr_equals_dense_inside_a_radius_and_a_ball():
    alike(up.CFedDA(mu=0.1, gamma=20.0, local_steps=4, radius=3.0))
    alike(FAST, up.Problem(up.Squared(), up.L1(0.02), ball=2.0))


def test_csr_equals_dense_for_several_outputs():
    data = pair(lambda y: np.digitize(y, [-0.5, 0.5, 1.0]).astype(float))
    algorithm = up.FastFedDA(mu=0.01, gamma=10.0, local_steps=3)
    alike(algorithm, up.Problem(up.Softmax(), up.L1(0.01), intercept=True), data)


def test_csr_equals_dense_in_single_precision():
    data = [part.astype("float32") for part in pair()]
    alike(FAST, data=data, tolerance=1e-5, dtype="float32")


def test_measured_defaults_agree():
    for algorithm in (up.FastFedDA(), up.FedDA()):
        csr = alike(algorithm, tolerance=1e-8)
        assert csr.notes


def test_a_cohort_in_parts_gives_the_same_bits(monkeypatch):
    _, csr = pair()
    whole = go(FAST, csr)
    monkeypatch.setattr(local, "UPLOAD_BYTES", 500)
    same_bits(whole, go(FAST, csr))


def touched(data, round, steps, batch):
    """The number of features in the minibatches of each sampled client, straight from the rows."""
    counts = []
    for k in sampling.cohort(1, round, data.n_clients, 5):
        X = data.client(data.ids[k]).X.toarray()
        drawn = [sampling.minibatch(1, round, int(k), j, len(X), batch) for j in range(steps)]
        counts.append(int((X[np.concatenate(drawn)] != 0).any(axis=0).sum()))
    return counts


def test_the_ledger_counts_the_features_that_were_touched():
    _, csr = pair()
    run = go(FAST, csr, rounds=3)
    counts = [n for r in range(3) for n in touched(csr, r, FAST.local_steps, 4)]
    sparse_bytes = [8 * (n + 1) + 4 * n for n in counts]  # values, the intercept, feature numbers
    whole = 8 * (P + 1)
    assert any(size > whole for size in sparse_bytes)
    assert any(size < whole for size in sparse_bytes)
    assert run.ledger.bytes_up == sum(min(size, whole) for size in sparse_bytes)
    floats = [n + 1 if size < whole else P + 1 for n, size in zip(counts, sparse_bytes, strict=True)]
    assert run.ledger.floats_up == sum(floats)
    assert run.ledger.bytes_down == 3 * 5 * whole


def test_divergence_names_the_client_that_sent_it():
    X, clients, _ = rows()
    X[clients == 4] *= 1e90
    data = up.FederatedData.from_arrays(sparse.csr_array(X), X[:, 0], clients)
    run = up.simulate(FAST, PROBLEM, data, rounds=3)
    assert run.status == "diverged"
    assert run.message == "The upload of client 4 was not finite in round 1."
