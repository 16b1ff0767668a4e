import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from unpooled.data import partition


@pytest.mark.parametrize(("n_rows", "n_clients"), [(10, 10), (103, 10), (7, 1)])
def test_iid_sizes_differ_by_at_most_one(n_rows, n_clients):
    sizes = np.bincount(partition.iid(n_rows, n_clients, seed=0), minlength=n_clients)
    assert len(sizes) == n_clients
    assert sizes.sum() == n_rows
    assert sizes.max() - sizes.min() <= 1
    assert sizes.min() >= 1


def test_iid_depends_on_the_seed_and_mixes_the_rows():
    one = partition.iid(100, 4, seed=0)
    np.testing.assert_array_equal(one, partition.iid(100, 4, seed=0))
    assert (one != partition.iid(100, 4, seed=1)).any()
    assert (np.diff(one) < 0).any()


def largest_share(labels, clients):
    """The share of each client's most frequent label, averaged over the clients."""
    return np.mean(
        [
            np.max(np.unique(labels[clients == k], return_counts=True)[1]) / np.sum(clients == k)
            for k in set(clients)
        ]
    )


def test_dirichlet_concentration_runs_from_one_label_each_to_no_skew():
    labels = np.repeat(np.array(["x", "y", "z", "u", "v"]), 400)
    skewed = partition.dirichlet(labels, 10, 0.02, seed=0)
    even = partition.dirichlet(labels, 10, 1e5, seed=0)
    assert largest_share(labels, skewed) > 0.8
    assert largest_share(labels, even) < 0.25
    np.testing.assert_allclose(np.bincount(even), 200, atol=10)
    np.testing.assert_array_equal(skewed, partition.dirichlet(labels, 10, 0.02, seed=0))


def test_dirichlet_proportions_have_the_dirichlet_variance():
    labels = np.zeros(10_000, dtype=int)
    K, c = 4, 2.0
    shares = (
        np.array([np.bincount(partition.dirichlet(labels, K, c, seed), minlength=K) for seed in range(200)])
        / 1e4
    )
    np.testing.assert_allclose(shares.mean(axis=0), 1 / K, atol=0.04)
    np.testing.assert_allclose(shares.var(), (1 / K) * (1 - 1 / K) / (K * c + 1), rtol=0.2)


@pytest.mark.parametrize("min_rows", [1, 5, 20])
def test_dirichlet_gives_every_client_its_minimum(min_rows):
    labels = np.repeat([0, 1], 200)
    sizes = np.bincount(partition.dirichlet(labels, 20, 0.01, seed=0, min_rows=min_rows), minlength=20)
    assert sizes.min() >= min_rows
    assert sizes.sum() == 400


def test_impossible_partitions_are_refused():
    with pytest.raises(ValueError, match="5 rows cannot give 3 clients 2 each"):
        partition.dirichlet([0, 1, 0, 1, 0], 3, 1.0, seed=0, min_rows=2)
    with pytest.raises(ValueError, match="5 rows cannot give 6 clients 1 each"):
        partition.iid(5, 6, seed=0)
    with pytest.raises(ValueError, match="concentration must be positive, got 0"):
        partition.dirichlet([0, 1], 1, 0, seed=0)
    with pytest.raises(ValueError, match="at least 1, got 0"):
        partition.iid(5, 0, seed=0)


def test_by_column():
    X = np.array([[1, 7], [2, 8], [3, 7]])
    assert partition.by_column(X, 1).tolist() == [7, 8, 7]
    assert partition.by_column(sparse.csc_array(X), 1).tolist() == [7, 8, 7]
    assert partition.by_column(pd.DataFrame(X, columns=["a", "site"]), "site").tolist() == [7, 8, 7]
    with pytest.raises(ValueError, match="no column 'sites'; closest: 'site'"):
        partition.by_column(pd.DataFrame(X, columns=["a", "site"]), "sites")
    with pytest.raises(ValueError, match="no column 2: X has 2"):
        partition.by_column(X, 2)
    with pytest.raises(TypeError, match="index, got 'site'"):
        partition.by_column(X, "site")
    with pytest.raises(ValueError, match=r"got \(3,\)"):
        partition.by_column(X[:, 0], 0)
