"""Cross-validation of estimators against scikit-learn's own on the same folds of the pooled rows."""

import numpy as np
import pytest
from sklearn.linear_model import ElasticNetCV, LassoCV, LogisticRegression
from sklearn.model_selection import KFold, LeaveOneGroupOut, PredefinedSplit

import unpooled as up
from tests.exact.federations import rows
from unpooled.cross_validation import deal

EXACT = {"tol": 1e-12, "max_iter": 100_000}
SHORT = {"n_alphas": 15, "eps": 0.01, "min_rows": 0, "tol": 1e-11}
X, Y, CLIENTS = rows("squared", n=150, p=10, sites=5)


def test_lasso():
    ours = up.FederatedLassoCV(**SHORT).fit(X, Y, clients=CLIENTS)
    order = np.argsort(CLIENTS, kind="stable")
    folds = np.empty(150, int)
    folds[order] = deal(ours._data, 5, 0)
    theirs = LassoCV(alphas=ours.alphas_, cv=PredefinedSplit(folds), **EXACT).fit(X, Y)
    np.testing.assert_allclose(ours.mse_path_, theirs.mse_path_, rtol=1e-7)
    assert ours.alpha_ == theirs.alpha_
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-7)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-7)
    assert ours.rounds_ == 1
    assert ours.problem_.penalty.lam == ours.alpha_
    grid = LassoCV(alphas=15, eps=0.01, cv=PredefinedSplit(folds), **EXACT).fit(X, Y)
    np.testing.assert_allclose(ours.alphas_, grid.alphas_, rtol=1e-10)


def test_splits_of_sklearn_and_weights():
    s = np.random.default_rng(0).uniform(0.5, 2.0, 150)
    splits = list(KFold(4, shuffle=True, random_state=1).split(X))
    ours = up.FederatedLassoCV(cv=splits, **SHORT).fit(X, Y, clients=CLIENTS, sample_weight=s)
    theirs = LassoCV(alphas=ours.alphas_, cv=splits, **EXACT).fit(X, Y, sample_weight=s)
    np.testing.assert_allclose(ours.mse_path_, theirs.mse_path_, rtol=1e-7)
    assert ours.alpha_ == theirs.alpha_


def test_one_site_left_out():
    ours = up.FederatedLassoCV(cv="sites", **SHORT).fit(X, Y, clients=CLIENTS)
    splits = list(LeaveOneGroupOut().split(X, groups=CLIENTS))
    theirs = LassoCV(alphas=ours.alphas_, cv=splits, **EXACT).fit(X, Y)
    np.testing.assert_allclose(ours.mse_path_, theirs.mse_path_, rtol=1e-7)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-7)


def test_elastic_net_chooses_the_ratio_too():
    folds, ratios = np.arange(150) % 3, [0.2, 0.9]
    ours = up.FederatedElasticNetCV(l1_ratio=ratios, cv=folds, **SHORT).fit(X, Y, clients=CLIENTS)
    theirs = ElasticNetCV(l1_ratio=ratios, alphas=15, eps=0.01, cv=PredefinedSplit(folds), **EXACT).fit(X, Y)
    assert ours.l1_ratio_ == theirs.l1_ratio_
    assert ours.alpha_ == pytest.approx(theirs.alpha_, rel=1e-10)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-7)
    assert ours.rounds_ == 2  # one for each ratio


def test_one_standard_error_takes_the_larger_alpha():
    least = up.FederatedLassoCV(**SHORT).fit(X, Y, clients=CLIENTS)
    plain = up.FederatedLassoCV(rule="1se", **SHORT).fit(X, Y, clients=CLIENTS)
    assert plain.alpha_ > least.alpha_
    assert np.count_nonzero(plain.coef_) <= np.count_nonzero(least.coef_)


def test_group_lasso():
    groups = np.arange(10) // 2
    folds = np.arange(150) % 3
    ours = up.FederatedGroupLassoCV(groups=groups, cv=folds, **SHORT).fit(X, Y, clients=CLIENTS)
    for f in range(3):
        kept, i = folds != f, 7
        fit = up.FederatedGroupLasso(ours.alphas_[i], groups=groups, tol=1e-12).fit(X[kept], Y[kept])
        error = np.mean((fit.predict(X[~kept]) - Y[~kept]) ** 2)
        assert ours.mse_path_[i, f] == pytest.approx(error, rel=1e-7)
    assert len({tuple(ours.coef_.reshape(5, 2)[g] != 0) for g in range(5)}) <= 2  # both or none


def test_logistic_regression():
    rows_, labels, clients = rows("logistic", n=150, p=5, sites=3)
    labels, folds = np.array(["no", "yes"])[labels.astype(int)], np.arange(150) % 3
    Cs = [0.1, 0.5]
    ours = up.FederatedLogisticRegressionCV(Cs=Cs, cv=folds, tol=1e-11)
    ours.fit(rows_, labels, clients=clients)
    np.testing.assert_allclose(ours.Cs_, Cs)  # from the largest alpha down
    for i, C in enumerate(Cs):
        for f in range(3):
            kept = folds != f  # two thirds of the rows: the same α is a C half as large again
            peer = LogisticRegression(C=1.5 * C, l1_ratio=1.0, solver="saga", tol=1e-11, max_iter=20_000)
            peer.fit(rows_[kept], labels[kept])
            p = peer.predict_proba(rows_[~kept])[np.arange(50), (labels[~kept] == "yes").astype(int)]
            assert ours.log_loss_path_[i, f] == pytest.approx(-np.log(p).mean(), rel=1e-6)
    best = up.FederatedLogisticRegression(ours.C_, tol=1e-11).fit(rows_, labels, clients=clients)
    np.testing.assert_allclose(ours.coef_, best.coef_, atol=1e-8)
    np.testing.assert_array_equal(ours.predict(rows_), best.predict(rows_))
    assert ours.ledger_.setup_rounds == 1


def test_multinomial_regression_has_a_path():
    rows_, labels, clients = rows("softmax", n=120, p=4, sites=3)
    model = up.FederatedLogisticRegressionCV(n_alphas=4, eps=0.05, cv=3).fit(rows_, labels, clients=clients)
    assert model.coef_.shape == (3, 4)
    assert not model.cv_result_.path.coefs[0].any()
    assert model.log_loss_path_.shape == (4, 3)
    assert model.C_ * model.alpha_ == pytest.approx(1 / 120)


def test_refused():
    for cv, complaint in (
        (1, "folds must be a whole number"),
        ("rows", "folds must be"),
        (np.zeros(7, int), "7 fold numbers"),
        ([(np.arange(100), np.arange(100, 150)), (np.arange(50), np.arange(50, 150))], "every row must be"),
        ([(np.arange(90), np.arange(100, 150)), (np.arange(100, 150), np.arange(100))], "split 0 must train"),
        (200, "n_samples=150"),
    ):
        with pytest.raises(ValueError, match=complaint):
            up.FederatedLassoCV(cv=cv, **SHORT).fit(X, Y, clients=CLIENTS)
    with pytest.raises(ValueError, match="1 client"):
        up.FederatedLassoCV(cv="sites").fit(X, Y)
    with pytest.raises(ValueError, match="give alphas"):
        up.FederatedElasticNetCV(l1_ratio=[0.0, 0.5]).fit(X, Y)
    with pytest.raises(ValueError, match="rule must be"):
        up.FederatedLassoCV(rule="best").fit(X, Y)
