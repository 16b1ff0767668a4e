"""A client's round on its own features: the same rows, under other numbers."""

import numpy as np
import pytest
from scipy import sparse

from unpooled.algorithms.gradients import Draws
from unpooled.engines.local.columns.local_numbering import draw_batches, localise, no_rows, number_anew
from unpooled.kernels import draws as sampling
from unpooled.kernels.rows import SparseRows


def record(X, weight=None):
    y = np.arange(X.shape[0], dtype=X.dtype)
    weight = np.empty(0, X.dtype) if weight is None else weight
    return SparseRows(X.data, X.indices, X.indptr, X.shape[1], y, weight)


def matrix(features, p, seed=0, n=30, dtype=np.float64):
    """Rows whose entries lie in some of the p columns."""
    rng = np.random.default_rng(seed)
    small = rng.standard_normal((n, len(features))) * (rng.random((n, len(features))) < 0.3)
    rows, places = np.nonzero(small)
    entries = small[rows, places].astype(dtype)
    return sparse.csr_array((entries, (rows, np.asarray(features)[places])), shape=(n, p))


@pytest.mark.parametrize(
    ("features", "p", "index"),
    [
        (range(12), 12, np.int32),
        (np.arange(40) * 2**14, 10**6, np.int32),  # all alike in their last bits
        (np.arange(40) + 10**6 - 40, 10**6, np.int64),
        (np.arange(40) * 2**32, 2**38, np.int64),  # all alike in their last 32
    ],
    ids=["few", "multiples", "last", "huge"],
)
def test_the_rows_are_the_same_under_their_own_names(features, p, index):
    X = matrix(features, p)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    chosen = np.array([7, 3, 29, 0])
    weight = np.linspace(1, 2, X.shape[0])
    names = np.full(X[chosen].nnz, -1)
    local = localise(record(X, weight), chosen, names)
    names = names[: local.n_columns]
    assert sorted(names) == sorted(set(X[chosen].indices))
    assert np.array_equal(local.y, chosen)
    assert np.array_equal(local.weight, weight[chosen])
    for i, row in enumerate(chosen):
        own, theirs = slice(*local.starts[i : i + 2]), slice(*X.indptr[row : row + 2])
        assert np.array_equal(names[local.columns[own]], X.indices[theirs])
        assert np.array_equal(local.values[own], X.data[theirs])


def test_rows_without_entries_and_without_weights():
    X = matrix(range(5), 5)
    X = sparse.csr_array(np.vstack([np.zeros((2, 5)), X.toarray()]))
    local = localise(record(X), np.array([0, 1]), np.empty(5, np.int64))
    assert (local.n_columns, local.values.size, local.weight.size) == (0, 0, 0)
    assert np.array_equal(local.starts, [0, 0, 0])
    idle = no_rows(record(X), 3)
    assert (idle.n_columns, idle.y.size, idle.starts.tolist()) == (3, 0, [0])


@pytest.mark.parametrize("size", [4, 9, 10, 50, 0])
def test_batches_are_those_of_every_other_engine(size):
    draws = Draws(np.array([0, 8, 18]), 1, np.uint64(5), size, 2)
    batches = draw_batches(draws, 1, 3)
    for j in range(3):
        expected = sampling.minibatch(5, 2, 1, j, 10, size or None)
        assert np.array_equal(batches[j % len(batches)], expected)
    chosen = number_anew(batches, 8, 10)
    assert len(set(chosen)) == len(chosen)
    for j in range(3):
        expected = 8 + sampling.minibatch(5, 2, 1, j, 10, size or None)
        assert np.array_equal(chosen[batches[j % len(batches)]], expected)
    assert set(batches.ravel()) == set(range(len(chosen)))
