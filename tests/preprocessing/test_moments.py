"""Pooled means and variances, from sites' summaries, against NumPy and scikit-learn on the stacked rows."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import StandardScaler

import unpooled as up
from unpooled.preprocessing import moments


def rows(n=90, p=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * np.array([1, 10, 0.01, 1, 1, 5][:p]) + np.array([0, 3, 1, -2, 0, 1][:p])
    return X, rng.normal(size=n), rng.permutation(np.arange(n) % 4)


def exact(X, weight):
    """The weighted mean and variance in extended precision."""
    X, weight = np.asarray(X, dtype=np.longdouble), np.asarray(weight, dtype=np.longdouble)
    weight = weight / weight.sum()
    mean = np.tensordot(weight, X, axes=1)
    return mean, np.tensordot(weight, np.square(X - mean), axes=1)


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("pi", ["samples", "uniform"])
def test_they_are_numpys(store, weighted, pi):
    X, y, clients = rows()
    X[:, 4] *= np.arange(90) % 3 == 0  # many zeros
    s = np.random.default_rng(1).uniform(0.5, 2, 90) if weighted else None
    data = up.FederatedData.from_arrays(store(X), y, clients, s, weights=pi)
    found = moments(data)
    pooled = data.X.toarray() if data.is_sparse else data.X
    mean, variance = exact(pooled, data.row_weights)
    np.testing.assert_allclose(found.mean, mean.astype(float), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found.variance, variance.astype(float), rtol=1e-12)
    if pi == "samples":
        scaler = StandardScaler().fit(X, sample_weight=s)
        np.testing.assert_allclose(found.scale, scaler.scale_, rtol=1e-12)
    assert found.ledger.rounds == 1
    assert found.ledger.floats_up == 4 * 5 * 6


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("mean", [1e6, -3e8])
def test_far_means_keep_their_digits(store, mean):
    X, y, clients = rows()
    X = mean + X / X.std(axis=0) + 0.3 * clients[:, None]
    found = moments(up.FederatedData.from_arrays(store(X), y, clients))
    expected = exact(X, np.ones(90))
    np.testing.assert_allclose(found.mean, expected[0].astype(float), rtol=1e-15)
    np.testing.assert_allclose(found.variance, expected[1].astype(float), rtol=1e-12)


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_the_split_over_clients_does_not_matter(store):
    X, y, _ = rows()
    s = np.random.default_rng(1).uniform(0.5, 2, 90)
    splits = [np.zeros(90, int), np.arange(90), np.arange(90) % 7, (np.arange(90) > 80).astype(int)]
    found = [moments(up.FederatedData.from_arrays(store(X), y, c, s)) for c in splits]
    for other in found[1:]:
        np.testing.assert_allclose(other.mean, found[0].mean, rtol=1e-13)
        np.testing.assert_allclose(other.variance, found[0].variance, rtol=1e-12)
    assert "90 of 90 clients have a single row" in found[1].notes[0]


def test_rows_that_are_matrices():
    X, y, clients = rows()
    found = moments(up.FederatedData.from_arrays(X.reshape(90, 2, 3), y, clients))
    assert found.mean.shape == found.scale.shape == (2, 3)
    np.testing.assert_allclose(found.mean, X.mean(axis=0).reshape(2, 3), rtol=1e-12)
    np.testing.assert_allclose(found.variance, X.var(axis=0).reshape(2, 3), rtol=1e-12)


def test_float32_is_summed_in_float64():
    X, y, clients = rows()
    X = (X + 1e4).astype(np.float32)
    found = moments(up.FederatedData.from_arrays(X, y, clients))
    np.testing.assert_allclose(found.variance, X.astype(float).var(axis=0), rtol=1e-12)


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e7 / 3])
def test_constant_columns_have_scale_one(store, value):
    X, y, clients = rows()
    X[:, [1, 3]] = value
    data = up.FederatedData.from_arrays(store(X), y, clients, feature_names=list("abcdef"))
    found = moments(data)
    np.testing.assert_array_equal(found.is_constant, [False, True, False, True, False, False])
    np.testing.assert_array_equal(found.scale[[1, 3]], 1.0)
    assert found.notes == ("column 'b' and column 'd' are constant: the scale there is 1.",)


def test_sparse_rows_are_never_dense():
    n, p = 4000, 400_000  # 13 GB if they were
    X = sparse.random_array((n, p), density=1e-5, rng=np.random.default_rng(0), format="csr")
    found = moments(up.FederatedData.from_arrays(X, np.zeros(n), np.arange(n) % 2))
    mean = np.asarray(X.sum(axis=0)).ravel() / n
    np.testing.assert_allclose(found.mean, mean, rtol=1e-12)
    square = np.asarray(X.power(2).sum(axis=0)).ravel() / n - mean**2
    np.testing.assert_allclose(found.variance, square, rtol=1e-9, atol=1e-18)


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_missing_values_are_left_out(store):
    X, y, clients = rows()
    s = np.random.default_rng(2).uniform(0.5, 2, 90)
    X[np.random.default_rng(3).random(X.shape) < 0.2] = np.nan
    X[clients == 2, 1] = np.nan  # a site that has observed none
    data = up.FederatedData.from_arrays(store(X), y, clients, s, allow_missing=True)
    found = moments(data)
    scaler = StandardScaler().fit(X, sample_weight=s)
    np.testing.assert_allclose(found.mean, scaler.mean_, rtol=1e-12)
    np.testing.assert_allclose(found.variance, scaler.var_, rtol=1e-12)
    np.testing.assert_array_equal(found.missing.sum(axis=0), np.isnan(X).sum(axis=0))
    np.testing.assert_array_equal(found.missing[2], np.isnan(X[clients == 2]).sum(axis=0))


def test_a_column_that_nobody_observed():
    X, y, clients = rows()
    X[:, 2] = np.nan
    with pytest.raises(ValueError, match="column 2 has no observed value at any client"):
        moments(up.FederatedData.from_arrays(X, y, clients, allow_missing=True))


def test_what_is_not_federated_data():
    with pytest.raises(TypeError, match="must be a FederatedData"):
        moments(np.ones((3, 2)))
