"""Cross-validation of estimators against scikit-learn's own on the same folds of the pooled rows."""

import re

import numpy as np
import pytest
from sklearn.linear_model import ElasticNetCV, LassoCV, LogisticRegression
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)

import unpooled as up
from tests.exact.federations import rows
from unpooled.exact.cross_validation import deal

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


class Halves:
    """A splitter of one's own, which splits the groups that it is given."""

    def get_n_splits(self, X=None, y=None, groups=None):
        return 2

    def split(self, X, y=None, groups=None):
        for first in (True, False):
            test = (groups < 2) == first
            yield np.flatnonzero(~test), np.flatnonzero(test)


@pytest.mark.parametrize(
    "splitter",
    [
        KFold(5),
        KFold(3, shuffle=True, random_state=3),
        GroupKFold(3),
        LeaveOneGroupOut(),
        PredefinedSplit(np.arange(150) // 50),
        Halves(),
    ],
    ids=lambda splitter: type(splitter).__name__,
)
def test_splitters_see_the_rows_as_they_were_given(splitter):
    mixed = np.random.default_rng(4).permutation(CLIENTS)  # so that the data are sorted otherwise
    ours = up.FederatedLassoCV(cv=splitter, **SHORT).fit(X, Y, clients=mixed)
    asks = isinstance(splitter, GroupKFold | LeaveOneGroupOut | Halves)
    splits = list(splitter.split(X, Y, mixed) if asks else splitter.split(X, Y))
    theirs = LassoCV(alphas=ours.alphas_, cv=splits, **EXACT).fit(X, Y)
    np.testing.assert_allclose(ours.mse_path_, theirs.mse_path_, rtol=1e-7)
    if len({len(test) for _, test in splits}) == 1:  # scikit-learn counts folds alike, whatever their size
        assert ours.alpha_ == theirs.alpha_
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-7)
    again = up.FederatedLassoCV(cv=splitter, **SHORT).fit(ours._data)  # rows in the order of the clients
    assert again.mse_path_.shape == ours.mse_path_.shape


def test_a_stratified_splitter_gets_the_classes():
    rows_, labels, clients = rows("logistic", n=90, p=3, sites=3)
    labels = np.array(["no", "yes"])[labels.astype(int)]
    splitter = StratifiedKFold(3, shuffle=True, random_state=0)
    folds = np.empty(90, int)
    for f, (_, test) in enumerate(splitter.split(rows_, labels)):
        folds[test] = f
    ours, theirs = (
        up.FederatedLogisticRegressionCV(Cs=[0.1, 1.0], cv=cv).fit(rows_, labels, clients=clients)
        for cv in (splitter, folds)
    )
    np.testing.assert_array_equal(ours.log_loss_path_, theirs.log_loss_path_)
    assert "log loss" in ours.notes_[-1]


def test_rows_of_weight_zero_are_not_split():
    s = np.where(np.arange(150) % 10 == 0, 0.0, 1.0)
    ours = up.FederatedLassoCV(cv=KFold(3), **SHORT).fit(X, Y, clients=CLIENTS, sample_weight=s)
    theirs = up.FederatedLassoCV(cv=KFold(3), **SHORT).fit(X[s > 0], Y[s > 0], clients=CLIENTS[s > 0])
    np.testing.assert_allclose(ours.mse_path_, theirs.mse_path_, rtol=1e-12)


@pytest.mark.parametrize(
    ("splitter", "complaint"),
    [
        (ShuffleSplit(2, random_state=0), r"cv=ShuffleSplit\(…\) tests 1\d\d rows never"),
        (RepeatedKFold(n_splits=3, n_repeats=2), r"RepeatedKFold\(…\) tests 150 rows more than once"),
        (TimeSeriesSplit(3), r"TimeSeriesSplit\(…\) tests 39 rows never"),
        (PredefinedSplit([-1, *range(149)]), "tests 1 row never, but every row must be tested in exactly"),
    ],
)
def test_splitters_that_are_not_a_partition(splitter, complaint):
    with pytest.raises(ValueError, match=complaint):
        up.FederatedLassoCV(cv=splitter, **SHORT).fit(X, Y, clients=CLIENTS)


def test_the_note_says_what_its_number_is():
    folds = np.arange(150) % 4
    model = up.FederatedLassoCV(cv=folds, **SHORT).fit(X, Y, clients=CLIENTS)
    words = re.search(
        r"mean held-out squared error (\S+) ± (\S+) \(mse_path_ over all rows", model.notes_[-1]
    )
    assert words is not None
    index = list(model.alphas_).index(model.alpha_)
    error = np.average(model.mse_path_[index], weights=np.bincount(folds))
    assert float(words[1]) == pytest.approx(error, rel=1e-5)
    assert 2.0 * model.cv_result_.mean[index] == pytest.approx(error)
