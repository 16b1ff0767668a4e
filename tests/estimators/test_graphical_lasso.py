"""The graphical lasso against scikit-learn's on the pooled rows, and its proof."""

import pickle

import numpy as np
import pytest
from sklearn.covariance import GraphicalLasso, empirical_covariance
from sklearn.exceptions import ConvergenceWarning

import unpooled as up
from unpooled.estimators.sparse_precision import sparse_precision


def chain(n=200, p=8, seed=0):
    """Rows in which only neighbours are related."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] += 0.6 * X[:, j - 1]
    return X + np.arange(p)


def value(Theta, S, alpha):
    off = np.abs(Theta).sum() - np.abs(np.diag(Theta)).sum()
    return np.sum(S * Theta) - np.linalg.slogdet(Theta)[1] + alpha * off


@pytest.mark.parametrize("alpha", [0.02, 0.15])
@pytest.mark.parametrize("assume_centered", [False, True])
def test_sklearn(alpha, assume_centered):
    X = chain() - (np.arange(8) if assume_centered else 0)
    options = {"alpha": alpha, "assume_centered": assume_centered}
    ours = up.FederatedGraphicalLasso(**options, tol=1e-11).fit(X, clients=np.arange(200) % 5)
    theirs = GraphicalLasso(**options, tol=1e-11, enet_tol=1e-11, max_iter=1000).fit(X)
    S = empirical_covariance(X, assume_centered=assume_centered)
    best = value(theirs.precision_, S, alpha)
    assert value(ours.precision_, S, alpha) == pytest.approx(best, rel=1e-8)
    assert ours.certificate_.objective == pytest.approx(best, rel=1e-8)
    np.testing.assert_allclose(ours.precision_, theirs.precision_, atol=1e-5)
    np.testing.assert_array_equal(ours.precision_ != 0, np.abs(theirs.precision_) > 1e-8)
    np.testing.assert_allclose(ours.covariance_ @ ours.precision_, np.eye(8), atol=1e-5)
    np.testing.assert_allclose(ours.location_, theirs.location_, atol=1e-12)
    assert ours.score(X) == pytest.approx(theirs.score(X), rel=1e-6)
    assert ours.rounds_ == 1


def test_the_gap_is_a_bound():
    """Whatever the number of passes, the optimum lies between the two values."""
    S = empirical_covariance(chain(n=40, p=10))
    best = value(sparse_precision(S, 0.1, 1e-13, 500).precision, S, 0.1)
    for passes in (1, 2, 3):
        proof = sparse_precision(S, 0.1, 1e-15, passes).certificate
        assert proof.dual <= best + 1e-10
        assert proof.objective >= best - 1e-10
    assert sparse_precision(S, 0.1, 1e-15, 1).certificate.gap > 1e-8


def test_fewer_rows_than_features():
    X = chain(n=12, p=20)
    model = up.FederatedGraphicalLasso(0.3).fit(X, clients=None)
    assert model.certificate_.relative <= 1e-8
    assert np.linalg.eigvalsh(model.precision_)[0] > 0


def test_weights_and_splits_do_not_matter():
    X = chain(n=60)
    counts = np.random.default_rng(1).integers(0, 4, 60)
    repeated = np.repeat(X, counts, axis=0)
    one = up.FederatedGraphicalLasso(0.1, min_rows=0, tol=1e-12).fit(repeated)
    for k in (1, 7, 50):
        weighted = up.FederatedGraphicalLasso(0.1, min_rows=0, tol=1e-12)
        weighted.fit(X, clients=np.minimum(np.arange(60), k - 1), sample_weight=counts)
        np.testing.assert_allclose(weighted.precision_, one.precision_, atol=1e-10)


def test_far_means_cost_one_more_round_and_no_digits():
    X, clients = chain(n=80, p=5), np.arange(80) % 4
    near = up.FederatedGraphicalLasso(0.1, tol=1e-11).fit(X, clients=clients)
    far = up.FederatedGraphicalLasso(0.1, tol=1e-11).fit(X + 1e5, clients=clients)
    assert (near.rounds_, far.rounds_) == (1, 2)
    np.testing.assert_allclose(far.precision_, near.precision_, atol=1e-7)


def test_refused():
    X = chain(n=30)
    with pytest.raises(ValueError, match=r"3 of 5 clients have fewer than 10 rows"):
        up.FederatedGraphicalLasso().fit(X, clients=np.repeat([0, 1, 2, 3, 4], [10, 11, 3, 3, 3]))
    with pytest.raises(ValueError, match="column 2 is constant"):
        up.FederatedGraphicalLasso().fit(np.where(np.arange(8) == 2, 1.0, X))
    with pytest.raises(ValueError, match="alpha=-1"):
        up.FederatedGraphicalLasso(-1).fit(X)
    with pytest.warns(ConvergenceWarning, match=r"after 1 pass with .* above tol=1e-15: raise max_iter"):
        up.FederatedGraphicalLasso(0.1, tol=1e-15, max_iter=1).fit(X)


def test_summary_and_pickle():
    model = up.FederatedGraphicalLasso(0.1).fit(chain(), clients=np.arange(200) % 2)
    text = model.summary()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.precision_, model.precision_)
    assert again.summary() == text
    assert "200 rows × 8 features of 2 clients" in text
    assert "edges" in text
    assert "1 round" in text
    assert "left the sites: column means, Gram matrix, refusals, row counts" in text  # and of no target
