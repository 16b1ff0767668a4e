"""Dense rows with columns that a client leaves at zero: the same results as working on all of them."""

import numpy as np
import pytest

import unpooled as up
from tests.engines.test_touched import PROBLEM, P, go, rows
from tests.runs import ALGORITHMS, FAST, same_bits
from unpooled.engines.local import engine as local
from unpooled.engines.local.columns import layouts
from unpooled.kernels.feature_major_rows import stride_of


def images(target=None, weighted=True, empty=0.0):
    """Each client has a margin of its own; column 17 is vacant everywhere, client 3 has zeros only."""
    _, clients, rng = rows()
    X = rng.standard_normal((len(clients), P))
    left, right = rng.integers(0, 20, 12), rng.integers(25, P, 12)
    columns = np.arange(P)
    X *= (columns >= left[clients, None]) & (columns < right[clients, None]) & (columns != 17)
    X[clients == 3] = 0
    X[rng.random(X.shape) < empty] = 0
    y = X[:, :30].sum(axis=1) + 0.1 * rng.standard_normal(len(X)) + 0.3
    s = rng.random(len(X)) + 0.5 if weighted else None
    return up.FederatedData.from_arrays(X, y if target is None else target(y), clients, s)


def whole(monkeypatch, run):
    """The same run on all columns."""
    with monkeypatch.context() as context:
        context.setattr(layouts, "layout_of", lambda data, n_outputs: None)
        return run()


@pytest.fixture
def alike(monkeypatch):
    def alike(algorithm, problem=PROBLEM, data=None, tolerance=1e-12, **options):
        data = images() if data is None else data
        assert layouts.best_layout(data.X, data.offsets, False) is not None

        def run():
            return go(algorithm, data, problem, **options)

        short, long = run(), whole(monkeypatch, run)
        assert short.status == "completed", short.message
        np.testing.assert_allclose(short.w, long.w, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(
            short.history["objective"], long.history["objective"], rtol=100 * tolerance
        )
        assert (short.ledger.bytes_up, short.ledger.floats_up) == (
            long.ledger.bytes_up,
            long.ledger.floats_up,
        )

    return alike


@pytest.mark.parametrize(
    "algorithm", [FAST, *(each for each in ALGORITHMS if type(each) in (up.FedDA, up.FedMiD))], ids=str
)
def test_each_kind_of_algorithm(alike, algorithm):
    alike(algorithm)


@pytest.mark.parametrize(
    "options",
    [{"cohort": None}, {"batch_size": None}, {"batch_size": 100}, {"weighting": "unbiased"}, {"w0": None}],
    ids=str,
)
def test_however_clients_take_part(alike, options):
    alike(FAST, **options)


def test_another_penalty_without_weights_and_intercept(alike):
    alike(FAST, up.Problem(up.Squared(), up.ElasticNet(0.05, 0.5)), images(weighted=False))


def test_several_outputs(alike):
    data = images(lambda y: np.digitize(y, [-0.5, 0.5, 1.0]).astype(float))
    algorithm = up.FastFedDA(mu=0.01, gamma=10.0, local_steps=3)
    alike(algorithm, up.Problem(up.Softmax(), up.L1(0.01), intercept=True), data)


def test_single_precision(alike):
    alike(FAST, data=images().astype("float32"), tolerance=1e-5)


@pytest.mark.parametrize("change", ["threads", "parts"])
def test_no_bit_depends_on(change, monkeypatch):
    before = go(FAST, images(), engine=up.engines.Local(threads=1))
    if change == "parts":
        monkeypatch.setattr(local, "UPLOAD_BYTES", 500)
    same_bits(before, go(FAST, images(), engine=up.engines.Local(threads=2)))


@pytest.mark.parametrize("aggregate", [up.Mean(), up.CoordinateMedian()], ids=str)
def test_non_zeros_of_several_outputs(alike, monkeypatch, aggregate):
    monkeypatch.setattr(layouts, "SEVERAL", 2)
    data = images(lambda y: np.digitize(y, [-0.5, 0.5, 1.0]).astype(float), empty=0.8)
    assert isinstance(layouts.layout_of(data, 4), layouts.NonZeros)
    algorithm = up.FastFedDA(mu=0.01, gamma=10.0, local_steps=3)
    alike(algorithm, up.Problem(up.Softmax(), up.L1(0.01), intercept=True), data, aggregate=aggregate)


def test_rows_are_copied_only_where_it_pays(monkeypatch):
    data = images()
    own = layouts.best_layout(data.X, data.offsets, False)
    for k, name in enumerate(data.ids):
        columns = own.feature[own.first[k] : own.first[k + 1]]
        X = data.client(name).X
        assert np.array_equal(columns, np.unique(columns))
        assert set(np.flatnonzero(X.any(axis=0))) <= set(columns)
        assert len(columns) == P or len(columns) % stride_of(1, 8) == 0
        assert np.array_equal(own.entries[own.start[k] : own.start[k + 1]], X[:, columns].ravel())
    assert layouts.best_layout(np.ones((len(data.y), P)), data.offsets, True) is None
    monkeypatch.setattr(layouts, "MOST_BYTES", 8)
    assert layouts.best_layout(data.X, data.offsets, False) is None
    assert layouts.best_layout(images(empty=0.8).X, data.offsets, True) is None


def test_non_zeros_are_those_of_the_rows():
    data = images(empty=0.8)
    own = layouts.best_layout(data.X, data.offsets, True)
    assert isinstance(own, layouts.NonZeros)
    for i, row in enumerate(data.X):
        k = np.searchsorted(data.offsets, i, side="right") - 1
        q = slice(own.starts[i], own.starts[i + 1])
        columns = own.feature[own.first[k] : own.first[k + 1]][own.columns[q]]
        assert np.array_equal(columns, np.flatnonzero(row))
        assert np.array_equal(own.values[q], row[columns])


def test_rows_on_disk_are_not_read_for_it(tmp_path):
    data = images()
    np.save(tmp_path / "X.npy", data.X)
    assert layouts.best_layout(np.load(tmp_path / "X.npy", mmap_mode="r"), data.offsets, False) is None


def test_divergence_names_the_client_that_sent_it():
    data = images()
    X, clients = np.array(data.X), np.repeat(np.arange(12), np.diff(data.offsets))
    X[clients == 4] *= 1e90
    data = up.FederatedData.from_arrays(X, X[:, 20], clients)
    run = up.simulate(FAST, PROBLEM, data, rounds=3)
    assert run.status == "diverged"
    assert run.message == "The upload of client 4 was not finite in round 1."
