"""Federated data: how rows are laid out, weighted, selected, split and fingerprinted."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from tests.clients import SIZES, Constructor, frame, pooled
from unpooled._validation import BLOCK
from unpooled.data.federated import FederatedData


@pytest.fixture(params=["arrays", "clients", "frame"])
def build(request):
    return Constructor(request.param)


def test_rows_are_grouped_by_client_in_their_own_order(build):
    X, y, clients = pooled()
    data = build(X, y, clients)
    assert data.ids == ("a", "b", "c")
    assert data.offsets.tolist() == [0, 1, 5, 8]
    assert data.offsets.dtype == np.int64
    assert (data.n_clients, len(data), data.n_rows, data.n_features) == (3, 3, 8, 3)
    for client in data:
        np.testing.assert_array_equal(client.X, X[clients == client.id])
        np.testing.assert_array_equal(client.y, y[clients == client.id])
        assert client.n_rows == SIZES[client.id]
    np.testing.assert_allclose(data.weights, [1 / 8, 4 / 8, 3 / 8])
    assert data.feature_names == ("age", "dose", "size")
    assert data.X.flags.c_contiguous


def test_long_clients_keep_the_order_of_their_rows():
    clients = np.random.default_rng(0).integers(3, size=5000)
    data = FederatedData.from_arrays(np.zeros((5000, 1)), np.arange(5000), clients)
    for client in data:
        np.testing.assert_array_equal(client.y, np.flatnonzero(clients == client.id))


def test_sorted_contiguous_arrays_are_shared_and_clients_are_views():
    X, y, clients = pooled()
    data = FederatedData.from_arrays(X, y, np.sort(clients))
    assert np.shares_memory(data.X, X)
    assert np.shares_memory(data.y, y)
    assert np.shares_memory(data.client("b").X, X)
    assert not np.shares_memory(FederatedData.from_arrays(np.asfortranarray(X), y, np.sort(clients)).X, X)
    assert FederatedData.from_arrays(np.asfortranarray(X), y, np.sort(clients)).X.flags.c_contiguous


def test_csr_clients_share_memory():
    X, y, clients = pooled()
    data = FederatedData.from_arrays(sparse.csr_array(X), y, np.sort(clients))
    assert np.shares_memory(data.client("b").X.data, data.X.data)
    assert np.shares_memory(data.client("b").X.indices, data.X.indices)


@pytest.mark.parametrize(
    ("given", "kept"),
    [(np.int64, "f8"), (bool, "f8"), (np.float16, "f4"), (np.float32, "f4"), (">f8", "f8"), (np.uint8, "f8")],
)
@pytest.mark.parametrize("presorted", [True, False])
def test_dtypes(given, kept, presorted):
    X = (np.arange(24) % 5).reshape(8, 3).astype(given)
    clients = pooled()[2]
    clients = np.sort(clients) if presorted else clients
    data = FederatedData.from_arrays(X, np.arange(8), clients)
    assert data.dtype == data.X.dtype == data.y.dtype == np.dtype(kept)
    np.testing.assert_array_equal(data.X, X[np.argsort(clients, kind="stable")].astype(float))


def test_rows_larger_than_a_block_are_all_gathered():
    X = np.random.default_rng(0).standard_normal((5, BLOCK // 2))
    data = FederatedData.from_arrays(X, np.zeros(5), [1, 0, 1, 0, 1])
    np.testing.assert_array_equal(data.X, X[[1, 3, 0, 2, 4]])
    X[2, -1] = np.inf
    with pytest.raises(ValueError, match=rf"client 1, row 2, column {BLOCK // 2 - 1} holds inf"):
        FederatedData.from_arrays(X, np.zeros(5), [1, 0, 1, 0, 1])


def test_memory_is_at_most_one_copy_and_the_checks_need_none():
    X = np.ones((16_000, 250))
    clients = np.repeat(np.arange(16), 1000)

    def peak(order):
        tracemalloc.start()
        FederatedData.from_arrays(X, np.zeros(len(X)), clients[order])
        try:
            return tracemalloc.get_traced_memory()[1] / X.nbytes
        finally:
            tracemalloc.stop()

    assert peak(slice(None)) < 0.05  # a boolean for each number would be 0.125
    assert 1 <= peak(slice(None, None, -1)) < 1.1


@pytest.mark.parametrize("fmt", ["csr", "csc", "coo"])
def test_csr_equals_dense(fmt):
    X, y, clients = pooled()
    X[np.abs(X) < 0.7] = 0
    s = np.arange(1.0, 9)
    dense = FederatedData.from_arrays(X, y, clients, s)
    csr = FederatedData.from_arrays(sparse.coo_array(X).asformat(fmt), y, clients, s)
    assert (dense.is_sparse, csr.is_sparse) == (False, True)
    for a, b in [
        (dense, csr),
        (dense.subset(["a", "c"]), csr.subset(["a", "c"])),
        (dense.subset(["b", "c"]), csr.subset(["b", "c"])),
        (dense.split(0.4, 0)[0], csr.split(0.4, 0)[0]),
        (dense.split(0.4, 0)[1], csr.split(0.4, 0)[1]),
        (dense.astype("f4"), csr.astype("f4")),
    ]:
        assert isinstance(b.X, sparse.csr_array)
        np.testing.assert_array_equal(a.X, b.X.toarray())
        for name in ("y", "offsets", "sample_weight", "weights", "totals", "sizes", "row_weights"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
        for name in ("ids", "n_rows", "n_features", "row_shape", "dtype", "n_clients"):
            assert getattr(a, name) == getattr(b, name)
        for one, other in zip(a, b, strict=True):
            np.testing.assert_array_equal(one.X, other.X.toarray())


def test_csr_duplicates_are_summed_without_touching_the_callers_array():
    X = sparse.csr_array((np.array([1.0, 2.0, 3.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    data = FederatedData.from_arrays(X, [0, 1], [0, 1])
    np.testing.assert_array_equal(data.X.toarray(), [[0, 3], [3, 0]])
    assert (data.X.nnz, X.nnz) == (2, 3)


def test_csr_from_clients_equals_dense():
    X, y, clients = pooled()
    parts = {k: (X[clients == k], y[clients == k]) for k in SIZES}
    csr = FederatedData.from_clients({k: (sparse.csr_matrix(a), b) for k, (a, b) in parts.items()})
    assert isinstance(csr.X, sparse.csr_array)
    np.testing.assert_array_equal(csr.X.toarray(), FederatedData.from_clients(parts).X)


def test_matrix_valued_rows():
    X = np.random.default_rng(0).standard_normal((4, 2, 3))
    data = FederatedData.from_arrays(X, np.zeros(4), [1, 0, 1, 0], truth=np.eye(2, 3))
    assert (data.row_shape, data.n_features) == ((2, 3), 6)
    np.testing.assert_array_equal(data.client(0).X, X[[1, 3]])
    X[3, 1, 2] = np.nan
    with pytest.raises(ValueError, match=r"client 0, row 3, column \(1, 2\) holds nan"):
        FederatedData.from_arrays(X, np.zeros(4), [1, 0, 1, 0])


def test_sample_weights_have_mean_one_inside_each_client_and_totals_make_the_weights(build):
    X, y, clients = pooled()
    s = np.arange(1.0, 9)
    data = build(X, y, clients, s)
    for k, client in enumerate(data):
        own = s[clients == client.id]
        np.testing.assert_allclose(client.sample_weight, own / own.mean())
        np.testing.assert_allclose(data.weights[k], own.sum() / s.sum())
    order = np.argsort(clients, kind="stable")
    np.testing.assert_allclose(data.row_weights, s[order] / s.sum())
    np.testing.assert_allclose(data.with_weights("uniform").with_weights("samples").weights, data.weights)


def test_client_weights():
    X, y, clients = pooled()
    data = FederatedData.from_arrays(X, y, clients, weights="uniform")
    np.testing.assert_allclose(data.weights, 1 / 3)
    np.testing.assert_allclose(data.with_weights([1, 1, 2]).weights, [0.25, 0.25, 0.5])
    parts = [(X[clients == k], y[clients == k]) for k in "cab"]
    np.testing.assert_allclose(
        FederatedData.from_clients(parts, "cab", weights=[2, 1, 1]).weights, [0.25, 0.25, 0.5]
    )
    with pytest.raises(ValueError, match=r"weights must be positive: client 'b' has 0.0"):
        data.with_weights([1, 0, 2])
    with pytest.raises(ValueError, match="3 numbers, one per client, got shape \\(2,\\)"):
        data.with_weights([1, 2])
    with pytest.raises(ValueError, match='"samples", "uniform" or 3 numbers, got \'equal\''):
        data.with_weights("equal")


@pytest.mark.parametrize(
    ("clients", "ids"),
    [
        ([3, 1, 3, 2], (1, 2, 3)),
        (np.array([10, 9, 10, 9], dtype=np.uint8), (9, 10)),
        ([np.int64(3), 1, 3, np.int32(2)], (1, 2, 3)),
        ([3.0, 1.0, 3.0, 2.0], (1, 2, 3)),
        ([np.str_("b"), "a", "b", "a"], ("a", "b")),
        (np.array(["b", "a", "b", "a"], dtype=object), ("a", "b")),
        (pd.Series(["b", "a", "b", "a"]), ("a", "b")),
        (pd.Series(["b", "a", "b", "a"], dtype="category"), ("a", "b")),
        (np.array([True, False, True, False]), (0, 1)),
    ],
)
def test_client_ids(clients, ids):
    data = FederatedData.from_arrays(np.arange(4.0)[:, None], np.arange(4), clients)
    assert data.ids == ids
    assert {type(name) for name in data.ids} == {type(ids[0])}
    expected = sorted(range(4), key=lambda i: list(clients)[i])
    assert data.y.tolist() == expected


def test_a_target_of_one_column_is_flattened():
    X, y, clients = pooled()
    data = FederatedData.from_arrays(X, y[:, None], clients)
    np.testing.assert_array_equal(data.y, FederatedData.from_arrays(X, y, clients).y)


def test_from_clients_defaults_to_numbered_ids_and_keeps_float32_only_if_all_do():
    one, two = np.ones((2, 2), "f4"), np.zeros((1, 2), "f4")
    data = FederatedData.from_clients([(one, [1, 2]), (two, [3])])
    assert data.ids == (0, 1)
    assert data.dtype == np.float32
    assert FederatedData.from_clients([(one, [1, 2]), (two.astype(int), [3])]).dtype == np.float64


def test_frame_columns():
    data = FederatedData.from_frame(frame(), target="age", client="site", features=["dose"])
    assert data.feature_names == ("dose",)
    np.testing.assert_array_equal(data.X, [[5], [4], [6]])
    np.testing.assert_array_equal(data.y, [2, 1, 3])
    assert data.y.flags.writeable
    single = frame()[["age", "dose", "site"]].astype({"dose": "f4"})
    assert FederatedData.from_frame(single, "age", "site").dtype == np.float32


def test_subset():
    X, y, clients = pooled()
    data = FederatedData.from_arrays(X, y, clients, weights=[1, 2, 5])
    ends = data.subset(["c", "a"])
    assert ends.ids == ("a", "c")
    np.testing.assert_allclose(ends.weights, [1 / 6, 5 / 6])
    np.testing.assert_array_equal(ends.client("c").X, X[clients == "c"])
    assert np.shares_memory(data.subset(["b", "c"]).X, data.X)
    counted = FederatedData.from_arrays(X, y, clients).subset(["a", "c"])
    np.testing.assert_allclose(counted.weights, [1 / 4, 3 / 4])
    with pytest.raises(ValueError, match="at least one client"):
        data.subset([])


def test_astype():
    X, y, clients = pooled()
    data = FederatedData.from_arrays(X, y, clients)
    assert data.astype(np.float64) is data
    single = data.astype("float32")
    assert single.X.dtype == single.y.dtype == np.float32
    np.testing.assert_array_equal(single.X, data.X.astype("f4"))
    with pytest.raises(TypeError, match="float32 or float64, got int64"):
        data.astype(np.int64)


def test_split_is_a_partition_of_every_client():
    X, y, clients = pooled()
    s = np.arange(1.0, 9)
    data = FederatedData.from_arrays(X, y, clients, s)
    train, test = data.split(0.3, seed=1)
    assert train.ids == ("a", "b", "c")
    assert test.ids == ("b", "c")
    assert (train.sizes.tolist(), test.sizes.tolist()) == ([1, 3, 2], [1, 1])
    for name in test.ids:
        both = np.concatenate([train.client(name).y, test.client(name).y])
        assert sorted(both) == sorted(y[clients == name])
    by_target = dict(zip(y, s, strict=True))
    for part in (train, test):  # the weights of a part are those of data made from its rows
        own = np.array([by_target[value] for value in part.y])
        again = FederatedData.from_arrays(part.X, part.y, np.repeat(part.ids, part.sizes), own)
        np.testing.assert_allclose(part.weights, again.weights)
        np.testing.assert_allclose(part.sample_weight, again.sample_weight)
        np.testing.assert_allclose(part.totals, again.totals)
    uniform = data.with_weights("uniform").split(0.3, seed=1)
    np.testing.assert_allclose(uniform[1].weights, 1 / 2)


def test_a_clients_split_depends_on_the_seed_and_its_id_only():
    y = np.arange(60.0)
    data = FederatedData.from_arrays(y[:, None], y, np.repeat([4, 5, 6], 20))
    alone = data.subset([6]).split(0.5, seed=3)[1]
    assert alone.y.tolist() == data.split(0.5, seed=3)[1].client(6).y.tolist()
    assert alone.y.tolist() != data.split(0.5, seed=4)[1].client(6).y.tolist()
    with pytest.raises(ValueError, match=r"between 0 and 1, got 1.5"):
        data.split(1.5, seed=0)
    with pytest.raises(ValueError, match="no client has two rows"):
        FederatedData.from_arrays(np.zeros((2, 1)), [0, 1], [0, 1]).split(0.5, seed=0)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_fingerprint_sees_every_change(container):
    def make(X, y, clients, s=None, weights="samples"):
        return FederatedData.from_arrays(container(X), y, clients, s, weights).fingerprint()

    X, y, clients = pooled()
    original = make(X, y, clients)
    assert original == make(X.copy(), y.copy(), clients.copy())
    changed = X.copy()
    changed[7, 2] = np.nextafter(changed[7, 2], 9)
    renamed = np.where(clients == "a", "0", clients)
    moved = np.where(np.arange(8) == np.argmax(clients == "b"), "c", clients)
    others = [
        make(changed, y, clients),
        make(X, -y, clients),
        make(X, y, renamed),
        make(X, y, moved),
        make(X, y, clients, np.arange(1, 9)),
        make(X, y, clients, weights="uniform"),
        make(X.astype("f4"), y, clients),
    ]
    assert len({original, *others}) == 8
    assert len(original) == 16


def test_repr():
    data = FederatedData.from_arrays(np.zeros((5, 2, 3)), np.zeros(5), [0, 0, 0, 1, 1])
    assert repr(data) == "FederatedData(2 clients, 5 rows × 2×3 features, float64, n_k 2–3)"
    csr = FederatedData.from_arrays(sparse.csr_array((5, 4), dtype="f4"), np.zeros(5), [0, 0, 0, 1, 1])
    assert repr(csr) == "FederatedData(2 clients, 5 rows × 4 features, float32 CSR, n_k 2–3)"
