"""Cross-validation against scikit-learn on the same folds of pooled rows."""

import numpy as np
import pytest
from sklearn.linear_model import LassoCV, LogisticRegression
from sklearn.model_selection import PredefinedSplit

import unpooled as up
from tests.exact.federations import federated
from unpooled.exact.cross_validation import deal

LASSO = up.Problem(up.Squared(), up.L1(1.0), True)


@pytest.mark.parametrize("solver", ["sufficient_statistics", "prox_newton", "anderson"])
def test_lasso(solver):
    data = federated("squared", n=200, p=12, sites=4)
    cv = up.cross_validate(LASSO, data, folds=5, n_lambdas=12, ratio=0.01, solver=solver, tol=1e-12)
    folds = deal(data, 5, 0)
    peer = LassoCV(alphas=cv.path.lambdas, cv=PredefinedSplit(folds), tol=1e-12, max_iter=100_000)
    peer.fit(data.X, data.y)
    np.testing.assert_allclose(2 * cv.losses, peer.mse_path_, rtol=1e-6)
    assert cv.lam == peer.alpha_
    np.testing.assert_allclose(cv.model[0], peer.coef_, atol=1e-5)
    if solver == "sufficient_statistics":
        assert cv.rounds == 1


def test_logistic():
    data = federated("logistic", n=150, p=6, sites=3)
    lambdas = [0.1, 0.02]
    folds = deal(data, 3, seed=7)
    problem = up.Problem(up.Logistic(), up.L1(1.0), True)
    cv = up.cross_validate(problem, data, folds=3, seed=7, lambdas=lambdas, tol=1e-11)
    for f in range(3):
        X, y, held = data.X[folds != f], data.y[folds != f], folds == f
        for i, lam in enumerate(lambdas):
            peer = LogisticRegression(
                C=1 / (lam * len(y)), l1_ratio=1.0, solver="saga", tol=1e-12, max_iter=50_000
            ).fit(X, y)
            z = data.X[held] @ peer.coef_[0] + peer.intercept_
            expected = np.mean(np.logaddexp(0, z) - data.y[held] * z)
            assert cv.losses[i, f] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("solver", ["sufficient_statistics", "prox_newton"])
def test_leave_one_site_out(solver):
    data = federated("squared", n=160, p=6, sites=4)
    cv = up.cross_validate(LASSO, data, folds="sites", lambdas=[0.3, 0.05], solver=solver, tol=1e-11)
    assert cv.losses.shape == (2, 4)
    for k, site in enumerate(data.ids):
        rest, own = data.subset([i for i in data.ids if i != site]), data.client(site)
        for i, lam in enumerate((0.3, 0.05)):
            fit = up.solve(LASSO.with_lam(lam), rest, tol=1e-11)
            r = own.X @ fit.w + fit.intercept - own.y
            assert cv.losses[i, k] == pytest.approx(0.5 * np.mean(r**2), rel=1e-7)
    assert any("one site was left out" in note for note in cv.path.notes)


def test_one_standard_error_takes_the_larger_lambda():
    data = federated("squared", n=200, p=12, sites=4)
    least, plain = (
        up.cross_validate(LASSO, data, n_lambdas=30, rule=rule, min_rows=5) for rule in ("min", "1se")
    )
    assert plain.lam > least.lam
    assert plain.mean[plain.index] <= least.mean[least.index] + least.se[least.index]
    assert plain.mean[plain.index - 1] > least.mean[least.index] + least.se[least.index]
    weights = np.bincount(deal(data, 5, 0)) / 200
    np.testing.assert_allclose(least.fold_weights, weights)
    np.testing.assert_allclose(least.mean, least.losses @ weights)


def test_folds_lie_inside_clients_and_depend_on_their_own_id_only():
    data = federated("squared", n=103, p=3, sites=4)
    folds = deal(data, 5, seed=3)
    for start, stop in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        sizes = np.bincount(folds[start:stop], minlength=5)
        assert sizes.max() - sizes.min() <= 1
    alone = deal(data.subset([2]), 5, seed=3)
    np.testing.assert_array_equal(alone, folds[data.offsets[2] : data.offsets[3]])
    assert (deal(data, 5, seed=4) != folds).any()


def test_far_means_cost_one_more_round_and_no_digits():
    near = federated("squared", n=120, p=4, sites=3)
    far = up.FederatedData.from_arrays(near.X + 1e6, near.y, np.repeat(np.arange(3), 40))
    options = {"lambdas": [0.2, 0.02], "tol": 1e-10, "min_rows": 5}
    a, b = (up.cross_validate(LASSO, data, **options) for data in (near, far))
    assert (a.rounds, b.rounds) == (1, 2)
    np.testing.assert_allclose(a.losses, b.losses, rtol=1e-7)


def test_refused_statistics_fall_back_to_gradients():
    data = federated("squared", n=80, p=4, sites=4)  # folds of four rows
    cv = up.cross_validate(LASSO, data, lambdas=[0.2, 0.02], tol=1e-10)
    exact = up.cross_validate(LASSO, data, lambdas=[0.2, 0.02], min_rows=0)
    assert cv.path.solver == "Anderson prox-gradient"
    assert any("4 of 4 clients have fewer than 10 rows in a fold:" in note for note in cv.path.notes)
    assert "gram" not in cv.ledger.kinds
    np.testing.assert_allclose(cv.losses, exact.losses, rtol=1e-4)


def test_refused():
    data = federated("squared", n=60, p=4, sites=3)
    for folds in (1, "rows", True, np.zeros(60, int), np.zeros(7, int)):
        with pytest.raises(ValueError, match="folds"):
            up.cross_validate(LASSO, data, folds=folds)
    with pytest.raises(ValueError, match="rule must be"):
        up.cross_validate(LASSO, data, rule="best")


def test_small_clients_stay_whole_and_save_rounds():
    rng = np.random.default_rng(0)
    sizes = np.array([12, 15, 19, 22, 31, 48, 60, 90])
    clients = np.repeat(np.arange(8), sizes)
    X = rng.standard_normal((sizes.sum(), 5))
    y = X @ [1.0, -1.0, 0.5, 0.0, 0.0] + rng.standard_normal(len(X))
    data = up.FederatedData.from_arrays(X, y, clients)
    plain = up.cross_validate(LASSO, data, folds=4, n_lambdas=10)
    [advice] = [note for note in plain.path.notes if "fold_rows" in note]
    assert advice.startswith("5 of 8 clients have enough rows to share matrices, but not in each of 4 folds.")
    assert f"one round instead of {plain.rounds}" in advice
    whole = up.cross_validate(LASSO, data, folds=4, n_lambdas=10, fold_rows=10)
    assert whole.rounds == 1 < plain.rounds
    assert not any("fold_rows" in note for note in whole.path.notes)
    folds = deal(data, 4, 0, fold_rows=10)
    table = np.array([np.bincount(folds[clients == k], minlength=4) for k in range(8)])
    assert ((table == 0) | (table >= 10)).all()
    assert (np.count_nonzero(table, axis=1) == [1, 1, 1, 2, 3, 4, 4, 4]).all()
    assert (folds[clients >= 5] == deal(data, 4, 0)[clients >= 5]).all()  # large clients deal as ever
    peer = LassoCV(alphas=whole.path.lambdas, cv=PredefinedSplit(folds), tol=1e-12, max_iter=100_000)
    np.testing.assert_allclose(2 * whole.losses, peer.fit(X, y).mse_path_, rtol=1e-6)


def test_fold_rows_that_cannot_be_are_refused():
    data = federated("squared", n=60, p=3, sites=2)
    with pytest.raises(ValueError, match=r"no rows; lower fold_rows=30, or take fewer folds"):
        up.cross_validate(LASSO, data, folds=5, fold_rows=30)
    with pytest.raises(ValueError, match="fold_rows=5 is for folds that clients deal"):
        up.cross_validate(LASSO, data, folds="sites", fold_rows=5)
    with pytest.raises(ValueError, match="whose intercepts nobody then knows"):
        up.cross_validate(up.Problem(up.Squared(), up.L1(1.0), "sites"), data, fold_rows=5)
    with pytest.raises(ValueError, match=r"whole number ≥ 0, got 1\.5"):
        up.cross_validate(LASSO, data, fold_rows=1.5)
