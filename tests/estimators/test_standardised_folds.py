"""Columns scaled over the training rows of each fold, against scikit-learn on the pooled rows."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import ElasticNet, Lasso, LassoCV
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

import unpooled as up
from tests.exact.federations import rows

X, Y, CLIENTS = rows("squared", n=90, p=6, sites=3)
X = X * np.array([1.0, 30.0, 0.01, 5.0, 1.0, 1.0])
X[:, 1] += 400.0
X[:, 5] = 0.0
X[3:9, 5] = 1.0  # only in the first fold does it vary: elsewhere in training rows alone, or not at all
FOLDS = KFold(3)
SHORT = {"n_alphas": 6, "eps": 0.02, "min_rows": 0, "tol": 1e-12, "cv": FOLDS}
PRECISE = {"tol": 1e-14, "max_iter": 200_000}


def pipelines(make, alphas, weight=None, center=True, columns=X):
    """Held-out mean squared errors (α, fold), everything learnt from the training rows."""
    weight = np.ones(len(Y)) if weight is None else weight
    errors = np.empty((len(alphas), FOLDS.get_n_splits()))
    for f, (train, test) in enumerate(FOLDS.split(columns)):
        scaler = StandardScaler(with_mean=center).fit(columns[train], sample_weight=weight[train])
        for i, alpha in enumerate(alphas):
            model = make(alpha).fit(scaler.transform(columns[train]), Y[train], sample_weight=weight[train])
            residuals = model.predict(scaler.transform(columns[test])) - Y[test]
            errors[i, f] = np.average(np.square(residuals), weights=weight[test])
    return errors


def test_the_lasso_is_that_of_a_pipeline_in_each_fold():
    model = up.FederatedLassoCV(standardise="fold", **SHORT).fit(X, Y, clients=CLIENTS)
    truth = pipelines(lambda alpha: Lasso(alpha, **PRECISE), model.alphas_)
    np.testing.assert_allclose(model.mse_path_, truth, rtol=1e-8)
    once = up.FederatedLassoCV(standardise=True, **SHORT).fit(X, Y, clients=CLIENTS)
    assert np.abs(once.mse_path_ / truth - 1.0).max() > 1e-3
    assert model.ledger_ == once.ledger_  # not a round or a number more
    np.testing.assert_array_equal(model.alphas_, once.alphas_)
    index = int(np.argmin(truth.mean(axis=1)))
    assert model.alpha_ == model.alphas_[index]
    final = up.FederatedLasso(model.alpha_, standardise=True, tol=1e-12).fit(X, Y)
    np.testing.assert_allclose(model.coef_, final.coef_, rtol=1e-7, atol=1e-12)


def test_weights_and_a_ridge():
    s = np.random.default_rng(1).uniform(0.5, 2.0, len(Y))
    model = up.FederatedElasticNetCV(standardise="fold", l1_ratio=0.4, **SHORT)
    model.fit(X, Y, clients=CLIENTS, sample_weight=s)
    truth = pipelines(lambda alpha: ElasticNet(alpha, l1_ratio=0.4, **PRECISE), model.alphas_, weight=s)
    np.testing.assert_allclose(model.mse_path_, truth, rtol=1e-8)


def test_without_an_intercept_and_with_sparse_rows():
    columns = X[:, [0, 2, 3, 4]]
    options = {"standardise": "fold", "fit_intercept": False, **SHORT}
    model = up.FederatedLassoCV(**options).fit(columns, Y, clients=CLIENTS)
    truth = pipelines(
        lambda alpha: Lasso(alpha, fit_intercept=False, **PRECISE),
        model.alphas_,
        center=False,
        columns=columns,
    )
    np.testing.assert_allclose(model.mse_path_, truth, rtol=1e-8)
    dense, csr = (
        up.FederatedLassoCV(standardise="fold", **SHORT).fit(rows_, Y, clients=CLIENTS)
        for rows_ in (X, sparse.csr_array(X))
    )
    np.testing.assert_allclose(csr.mse_path_, dense.mse_path_, rtol=1e-8)


def test_the_group_lasso_and_free_columns():
    groups = [0, 0, 1, 1, 2, 2]
    model = up.FederatedGroupLassoCV(groups=groups, standardise="fold", **SHORT).fit(X, Y, clients=CLIENTS)
    free = up.FederatedLassoCV(unpenalised=[1], standardise="fold", **SHORT).fit(X, Y, clients=CLIENTS)
    for f, (train, test) in enumerate(FOLDS.split(X)):
        one = up.FederatedGroupLasso(model.alphas_[3], groups=groups, standardise=True, tol=1e-12)
        error = np.mean(np.square(one.fit(X[train], Y[train]).predict(X[test]) - Y[test]))
        assert model.mse_path_[3, f] == pytest.approx(error, rel=1e-8)
        lasso = up.FederatedLasso(free.alphas_[3], unpenalised=[1], standardise=True, tol=1e-12)
        error = np.mean(np.square(lasso.fit(X[train], Y[train]).predict(X[test]) - Y[test]))
        assert free.mse_path_[3, f] == pytest.approx(error, rel=1e-8)


@pytest.mark.parametrize("free", [(), (5,)])
@pytest.mark.parametrize("standardise", [False, True, "fold"])
def test_a_column_that_varies_in_one_fold_only(standardise, free):
    columns = X.copy()
    columns[:, 5] += 1.0  # 1 in all training rows of the first fold, and not 0
    options = {**SHORT, "standardise": standardise}
    model = up.FederatedLassoCV(unpenalised=free, **options).fit(columns, Y, clients=CLIENTS)
    without = up.FederatedLassoCV(**options, alphas=model.alphas_).fit(columns[:, :5], Y, clients=CLIENTS)
    # where no training row tells anything of the column, its coefficient is zero
    np.testing.assert_allclose(model.mse_path_[:, 0], without.mse_path_[:, 0], rtol=1e-8)
    if not standardise and not free:
        truth = LassoCV(alphas=model.alphas_, cv=FOLDS, **PRECISE).fit(columns, Y)
        np.testing.assert_allclose(model.mse_path_, truth.mse_path_, rtol=1e-7)


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        (up.FederatedLassoCV(standardise="fold", site_intercepts=True), "with site intercepts the folds'"),
        (
            up.FederatedLassoCV(standardise="fold", solver="fista"),
            "but this fit is by FISTA. standardise=True",
        ),
        (up.FederatedLassoCV(standardise="fold", min_rows=20), "3 of 3 clients have fewer than 20 rows in a"),
        (up.FederatedLassoCV(standardise="site"), "must be False or True or 'fold' here, got 'site'"),
        (up.FederatedLasso(standardise="fold"), "must be False or True here, got 'fold'"),
    ],
)
def test_refused(model, complaint):
    with pytest.raises(ValueError, match=complaint):
        model.fit(X, Y, clients=CLIENTS)
    labels = up.FederatedLogisticRegressionCV(standardise="fold")
    with pytest.raises(ValueError, match="but this fit is by prox-Newton: prox-Newton was chosen"):
        labels.fit(X, np.median(Y) < Y, clients=CLIENTS)
