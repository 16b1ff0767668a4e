"""Second-order statistics stay at a site where they could give a row away."""

import numpy as np
import pytest
from scipy import sparse

import unpooled as up
from tests.exact.federations import LOSSES, federated, rows
from unpooled.data.client_view import Client
from unpooled.exact.oracle import answer, hidden_columns
from unpooled.exact.site import Site, unpacked

ALL = np.arange(3)


def site(X):
    X = X if sparse.issparse(X) else np.asarray(X, dtype=float)
    return Site.of(Client("a", X, np.zeros(X.shape[0]), None))


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_rare_values(store):
    X = np.random.default_rng(0).standard_normal((40, 3))
    assert not hidden_columns(site(store(X)), ALL, 10).any()
    assert hidden_columns(site(store(X[:9])), ALL, 10).all()
    for common, rare, count in [(0, 1, 9), (1, 0, 9), (5, 7, 1)]:
        B = X.copy()
        B[:, 1] = common
        B[3 : 3 + count, 1] = rare
        assert hidden_columns(site(store(B)), ALL, 10).tolist() == [False, True, False]
        assert not hidden_columns(site(store(B)), ALL, count).any()
        assert not hidden_columns(site(store(B)), np.array([0, 2]), 10).any()
    assert not hidden_columns(site(store(X[:10])), ALL, 10).any()  # ten values that all differ
    B = X.copy()
    B[:, 1] = 0.0  # a column in which nobody stands out
    assert not hidden_columns(site(store(B)), ALL, 10).any()


def test_a_small_site_sends_gradients_and_the_others_set_the_steps():
    X, y, clients = rows("squared", n=100, p=5, sites=4)
    clients[:3] = 9  # a site of three rows
    problem = up.Problem(up.Squared(), up.L1(0.1), True)
    data = up.FederatedData.from_arrays(X, y, clients)
    fit = up.solve(problem, data, tol=1e-10)
    assert fit.solver == "prox-Newton"
    assert any("1 of 5 clients has fewer than 10 rows" in note for note in fit.notes)
    assert fit.rounds <= 7
    assert "diagonal" in fit.ledger.kinds
    exact = up.solve(problem, data, min_rows=3)
    assert exact.solver == "sufficient statistics"
    np.testing.assert_allclose(fit.w, exact.w, atol=1e-4)


@pytest.mark.parametrize("kind", ["squared", "logistic", "poisson", "huber"])
def test_mixed_answers_reach_the_same_optimum(kind):
    X, y, clients = rows(kind, n=240, p=8, sites=6)
    clients[:5] = 9  # a site of five rows
    X[:, 7] = (np.arange(240) % 40 == 3).astype(float)  # a rare column at every site
    data = up.FederatedData.from_arrays(X, y, clients)
    problem = up.Problem(LOSSES[kind], up.L1(0.02), True)
    fit, gradients = up.solve(problem, data, tol=1e-11), up.solve(problem, data, solver="anderson", tol=1e-9)
    exact = up.solve(problem, data, min_rows=0, tol=1e-11)
    assert fit.solver == "prox-Newton"
    assert fit.converged
    assert fit.certificate.kind == "duality gap"
    assert exact.rounds <= fit.rounds <= gradients.rounds
    np.testing.assert_allclose(fit.w, exact.w, atol=1e-5)


def test_a_column_that_stays_is_not_in_the_matrix():
    X = np.random.default_rng(0).standard_normal((40, 3))
    X[:, 1] = 0.0
    X[5, 1] = 1.0
    own = site(X)
    problem = up.Problem(up.Squared(), up.L1(0.1), True).bind(
        up.FederatedData.from_arrays(X, np.zeros(40), np.zeros(40, int))
    )
    told = answer(problem, own, {"features": ALL}, 10)
    G = unpacked(told["gram"], 3)
    assert not G[1].any()
    np.testing.assert_allclose(G[0, 2], X[:, 0] @ X[:, 2] / 40)
    np.testing.assert_allclose(told["diagonal"], [0.0, 1 / 40, 0.0])
    alone = answer(problem, site(X[:5]), {"features": ALL}, 10)
    assert "gram" not in alone
    np.testing.assert_allclose(alone["diagonal"], np.square(X[:5]).mean(axis=0))


def test_a_rare_column_is_learnt_from_gradients():
    data = federated("logistic", n=120, p=5, sites=3)
    data.X[:, 4] = 0.0
    data.X[0, 4] = 1.0
    fit = up.solve(up.Problem(up.Logistic(), up.L1(0.02), True), data)
    assert fit.solver == "prox-Newton"
    assert fit.converged
    assert any("1 of 3 clients has a column in which fewer than 10 rows stand out" in n for n in fit.notes)


def test_a_refusing_client_sends_no_gram_matrix():
    data = federated("squared", n=20, p=3, sites=4)  # five rows each
    fit = up.solve(up.Problem(up.Squared(), up.L1(0.1)), data)
    assert "gram" not in fit.ledger.kinds
    assert {"refused_rows", "gradient"} <= set(fit.ledger.kinds)


def test_gradients_manage_far_means():
    near = federated("squared", n=60, p=3, sites=20)  # three rows each: no second-order statistics
    far = up.FederatedData.from_arrays(near.X + 1e4, near.y, np.repeat(np.arange(20), 3))
    fits = [up.solve(up.Problem(up.Squared(), up.L1(0.1), True), data) for data in (near, far)]
    assert [fit.solver for fit in fits] == ["Anderson prox-gradient"] * 2
    np.testing.assert_allclose(fits[0].w, fits[1].w, atol=1e-4)


def test_second_order_can_be_ruled_out():
    data = federated("logistic")
    fit = up.solve(up.Problem(up.Logistic(), up.L1(0.02)), data, second_order=False)
    assert fit.solver == "Anderson prox-gradient"
    assert not {"gram", "hessian", "refused_rows"} & set(fit.ledger.kinds)
    assert any("not to be shared" in note for note in fit.notes)
    with pytest.raises(ValueError, match="prox-Newton needs second-order statistics"):
        up.solve(up.Problem(up.Logistic(), up.L1(0.02)), data, solver="prox_newton", second_order=False)


def test_a_column_that_is_rare_in_one_fold_sends_no_fold_to_gradients():
    data = federated("squared", n=300, p=6, sites=3)
    folds = np.arange(300) % 4
    data.X[:, 5] = 0.0
    data.X[[0, 4], 5] = 1.0  # two rows of the first site, both in the first fold
    problem = up.Problem(up.Squared(), up.L1(1.0), True)
    guarded = up.cross_validate(problem, data, folds=folds, n_lambdas=10, tol=1e-12)
    free = up.cross_validate(problem, data, folds=folds, n_lambdas=10, min_rows=0, tol=1e-12)
    assert free.rounds == 1
    assert guarded.path.solver == "prox-Newton"
    assert guarded.rounds <= 6
    np.testing.assert_allclose(guarded.losses, free.losses, rtol=1e-5)
