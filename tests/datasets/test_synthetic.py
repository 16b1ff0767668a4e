import numpy as np
import pytest
from scipy import stats

from unpooled.data.datasets import (
    gaussian_start,
    low_rank_regression,
    sparse_classification,
    sparse_regression,
)
from unpooled.runs import metrics


def within(data):
    """Rows less their client's mean: the shift of the client is gone."""
    X = data.X.reshape(data.n_rows, -1)
    return np.concatenate(
        [X[a:b] - X[a:b].mean(axis=0) for a, b in zip(data.offsets, data.offsets[1:], strict=False)]
    )


def means(data):
    return np.add.reduceat(data.X.reshape(data.n_rows, -1), data.offsets[:-1]) / data.sizes[:, None]


def test_sparse_regression_has_the_papers_defaults():
    data = sparse_regression(0)
    assert (data.n_clients, data.n_features, set(data.sizes)) == (64, 1024, {128})
    np.testing.assert_array_equal(data.truth, np.r_[np.ones(512), np.zeros(512)])
    np.testing.assert_allclose(data.weights, 1 / 64)


@pytest.mark.parametrize("correlation", [0.5, -0.7, 0.0])
def test_sparse_regression_covariance(correlation):
    data = sparse_regression(1, n_clients=10, n_rows=4000, n_features=6, sparsity=2, correlation=correlation)
    lag = np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    np.testing.assert_allclose(np.cov(within(data).T), float(correlation) ** lag, atol=0.03)


@pytest.mark.parametrize("heterogeneity", [0.0, 1.0, 3.0])
def test_client_shifts_are_independent_normals_of_the_given_scale(heterogeneity):
    shape = {"n_clients": 1000, "n_rows": 50, "n_features": 4, "sparsity": 2}
    shifts = np.cov(means(sparse_regression(2, heterogeneity=heterogeneity, **shape)).T)
    lag = np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    expected = heterogeneity**2 * np.eye(4) + 0.5**lag / 50
    np.testing.assert_allclose(shifts, expected, atol=0.15 * (heterogeneity**2 + 0.02))


@pytest.mark.parametrize("noise", [0.0, 2.0])
def test_regression_residuals_are_the_noise(noise):
    vectors = sparse_regression(3, n_clients=5, n_rows=2000, n_features=8, sparsity=3, noise=noise)
    matrices = low_rank_regression(3, n_clients=5, n_rows=2000, shape=(3, 4), rank=2, noise=noise)
    for data in (vectors, matrices):
        assert metrics.mse(data)(data.truth) == pytest.approx(noise**2, rel=0.05, abs=1e-20)
        if noise:
            residuals = data.y - data.X.reshape(data.n_rows, -1) @ data.truth.ravel()
            assert stats.kstest(residuals / noise, "norm").pvalue > 1e-3


def test_low_rank_regression_gives_each_client_its_own_shift():
    data = low_rank_regression(4, n_clients=400, n_rows=20, shape=(2, 3), rank=2)
    np.testing.assert_array_equal(data.truth, [[1, 0, 0], [0, 1, 0]])
    np.testing.assert_allclose(np.cov(means(data).T), (1 + 1 / 20) * np.eye(6), atol=0.25)
    np.testing.assert_allclose(np.cov(within(data).T), np.eye(6) * 19 / 20, atol=0.06)
    assert low_rank_regression(0, n_clients=2, n_rows=2).row_shape == (32, 32)
    assert np.linalg.matrix_rank(low_rank_regression(0, n_clients=2, n_rows=2).truth) == 16
    assert low_rank_regression(0, n_clients=1, n_rows=1, shape=(4, 2), rank=2).truth.sum() == 2


GENERATORS = {
    "sparse": lambda seed, k, **kw: sparse_regression(seed, k, 5, 6, 2, **kw),
    "low_rank": lambda seed, k, **kw: low_rank_regression(seed, k, 5, (2, 3), 1, **kw),
    "classes": lambda seed, k, **kw: sparse_classification(seed, k, 5, 6, 3, 2, **kw),
}


@pytest.mark.parametrize("name", GENERATORS)
def test_a_clients_data_depends_on_the_seed_and_its_number_only(name):
    few, many = GENERATORS[name](7, 2), GENERATORS[name](7, 4)
    for k in (0, 1):
        np.testing.assert_array_equal(few.client(k).X, many.client(k).X)
        np.testing.assert_array_equal(few.client(k).y, many.client(k).y)
    assert few.fingerprint() == GENERATORS[name](7, 2).fingerprint()
    assert not np.isin(GENERATORS[name](8, 2).X, few.X).any()
    assert not np.isin(few.client(0).X, few.client(1).X).any()


def test_generators_of_one_seed_share_no_random_numbers():
    assert not np.isin(GENERATORS["sparse"](7, 2).X, GENERATORS["classes"](7, 2).X).any()


@pytest.mark.parametrize("name", GENERATORS)
def test_float32_data_is_the_same_data_rounded(name):
    double, single = GENERATORS[name](7, 2), GENERATORS[name](7, 2, dtype=np.float32)
    assert single.dtype == single.truth.dtype == np.float32
    np.testing.assert_array_equal(double.X.astype("f4"), single.X)
    np.testing.assert_array_equal(double.y.astype("f4"), single.y)


def test_classification_truth_and_labels():
    two = sparse_classification(0, n_clients=3, n_rows=20, n_features=10, sparsity=4, signal=2.0)
    np.testing.assert_array_equal(two.truth, [-1, -1, 1, 1, 0, 0, 0, 0, 0, 0])
    three = sparse_classification(0, n_clients=3, n_rows=200, n_features=10, n_classes=3, sparsity=6)
    assert three.truth.shape == (10, 3)
    assert (three.truth != 0).sum() == 6
    assert (three.truth != 0).sum(axis=0).tolist() == [2, 2, 2]
    assert set(three.y) == {0, 1, 2}


@pytest.mark.parametrize("n_classes", [2, 3])
def test_labels_follow_the_softmax_of_the_truth(n_classes):
    data = sparse_classification(5, n_clients=40, n_rows=500, n_features=5, n_classes=n_classes, sparsity=3)
    scores = data.X @ data.truth if n_classes > 2 else np.c_[np.zeros(data.n_rows), data.X @ data.truth]
    probabilities = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    for c in range(n_classes):
        bins = np.digitize(probabilities[:, c], [0.1, 0.3, 0.5, 0.7, 0.9])
        for b in range(6):
            rows = bins == b
            p, n = probabilities[rows, c].mean(), rows.sum()
            assert abs((data.y[rows] == c).mean() - p) < 4.5 * np.sqrt(p * (1 - p) / n)


def test_heterogeneity_makes_the_mix_of_classes_differ():
    spread = [np.std([c.y.mean() for c in sparse_classification(6, heterogeneity=h)]) for h in (0.0, 1.0)]
    assert spread[0] < 0.06  # binomial: 0.5/√128 = 0.044
    assert spread[1] > 0.1


def test_gaussian_start():
    data = sparse_regression(9, n_clients=4, n_rows=3, n_features=2000, sparsity=5)
    w = gaussian_start(data, 9)
    assert w.shape == (2000,)
    assert stats.kstest(w, "norm").pvalue > 1e-3
    np.testing.assert_array_equal(w, gaussian_start(data, 9))
    shift = means(data)
    for draws in (*data.X, *shift):  # the same seed, but other random numbers
        assert abs(np.corrcoef(w, draws)[0, 1]) < 0.1
    assert gaussian_start(data.astype("f4"), 9).dtype == np.float32
    assert gaussian_start(data, 9, outputs=3).shape == (2000, 3)
    assert gaussian_start(low_rank_regression(0, 2, 2), 0).shape == (32, 32)


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (sparse_regression, {"n_clients": 0}, "n_clients must be at least 1, got 0"),
        (sparse_regression, {"n_rows": 0}, "n_rows must be at least 1, got 0"),
        (sparse_regression, {"n_features": 0}, "n_features must be at least 1, got 0"),
        (sparse_regression, {"sparsity": 1025}, "between 0 and n_features = 1024, got 1025"),
        (sparse_regression, {"correlation": 1.0}, "between -1 and 1, got 1.0"),
        (
            sparse_regression,
            {"heterogeneity": -1.0},
            "heterogeneity must be finite and not negative, got -1.0",
        ),
        (sparse_regression, {"noise": np.nan}, "noise must be finite and not negative, got nan"),
        (low_rank_regression, {"rank": 33}, "rank must lie between 0 and 32, got 33"),
        (low_rank_regression, {"shape": (0, 3)}, "p1 must be at least 1, got 0"),
        (sparse_classification, {"n_classes": 1}, "n_classes must be at least 2, got 1"),
    ],
)
def test_arguments_are_checked(make, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(0, **arguments)


@pytest.mark.parametrize("name", GENERATORS)
def test_other_dtypes_are_refused(name):
    with pytest.raises(TypeError, match="float32 or float64, got int64"):
        GENERATORS[name](0, 1, dtype=np.int64)
