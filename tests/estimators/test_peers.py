"""The same model as scikit-learn's on the pooled rows, for the same parameters."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, PoissonRegressor

import unpooled as up
from tests.exact.federations import rows

EXACT = {"tol": 1e-12, "max_iter": 1_000_000}
TIGHT = {"tol": 1e-11}


def weights(n):
    return np.random.default_rng(5).uniform(0.2, 3.0, n)


@pytest.mark.parametrize("as_csr", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_lasso_and_elastic_net(fit_intercept, weighted, as_csr):
    X, y, clients = rows("squared", n=150, p=12)
    s = weights(150) if weighted else None
    X = sparse.csr_array(X) if as_csr else X
    for ours, theirs in (
        (up.FederatedLasso(0.1), Lasso(0.1, **EXACT)),
        (up.FederatedElasticNet(0.2, l1_ratio=0.7), ElasticNet(0.2, l1_ratio=0.7, **EXACT)),
    ):
        ours.set_params(fit_intercept=fit_intercept).fit(X, y, clients=clients, sample_weight=s)
        theirs.set_params(fit_intercept=fit_intercept).fit(X, y, sample_weight=s)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-8)
        np.testing.assert_array_equal(ours.coef_ != 0, theirs.coef_ != 0)
        assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-8)
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-7)
        assert ours.score(X, y, sample_weight=s) == pytest.approx(theirs.score(X, y, sample_weight=s))
        assert ours.rounds_ == 1


def logistic_objective(model, X, codes, s, C, ratio):
    Z = X @ model.coef_.T + model.intercept_
    Z = np.column_stack([np.zeros(len(Z)), Z]) if Z.shape[1] == 1 else Z
    top = Z.max(axis=1)
    losses = np.log(np.exp(Z - top[:, None]).sum(axis=1)) + top - Z[np.arange(len(Z)), codes]
    w = model.coef_
    return C * s @ losses + ratio * np.abs(w).sum() + 0.5 * (1 - ratio) * np.square(w).sum()


LABELS = {
    "logistic": np.array(["case", "control"]),
    "softmax": np.array([-7, 3, 40]),
}


@pytest.mark.parametrize("ratio", [1.0, 0.5, 0.0])
@pytest.mark.parametrize("kind", LABELS)
def test_logistic_regression(kind, ratio):
    X, y, clients = rows(kind, n=120, p=6)
    codes, s, C = y.astype(int), weights(120), 0.3
    labels = LABELS[kind][codes]
    ours = up.FederatedLogisticRegression(C, l1_ratio=ratio, **TIGHT)
    ours.fit(X, labels, clients=clients, sample_weight=s)
    theirs = LogisticRegression(C=C, l1_ratio=ratio, solver="saga", tol=1e-10, max_iter=20_000)
    theirs.fit(X, labels, sample_weight=s)
    best = logistic_objective(ours, X, codes, s, C, ratio)
    assert best == pytest.approx(logistic_objective(theirs, X, codes, s, C, ratio), rel=1e-8)
    np.testing.assert_array_equal(ours.coef_ != 0, theirs.coef_ != 0)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    np.testing.assert_allclose(np.exp(ours.predict_log_proba(X)), ours.predict_proba(X), atol=1e-12)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.decision_function(X).shape == theirs.decision_function(X).shape
    # what solve minimises is this objective divided by CΣs
    assert ours.certificate_.objective * C * s.sum() == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("class_weight", ["balanced", {"case": 3.0}])
def test_class_weights_come_from_all_clients_together(class_weight):
    X, y, _ = rows("logistic", n=120, p=6)
    labels = LABELS["logistic"][y.astype(int)]
    clients = (y * 2 + np.arange(120) % 2).astype(int)  # each has one class only
    ours = up.FederatedLogisticRegression(0.5, class_weight=class_weight, **TIGHT)
    ours.fit(X, labels, clients=clients)
    theirs = LogisticRegression(
        C=0.5, l1_ratio=1.0, class_weight=class_weight, solver="saga", tol=1e-10, max_iter=20_000
    ).fit(X, labels)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
    assert {"class labels", "class weights"} <= set(ours.ledger_.kinds)
    assert ours.ledger_.setup_rounds == 1


def test_poisson_regression_with_the_squared_norm():
    X, y, clients = rows("poisson", n=150, p=6)
    s = weights(150)
    ours = up.FederatedPoissonRegressor(0.1, l1_ratio=0.0).fit(X, y, clients=clients, sample_weight=s)
    theirs = PoissonRegressor(alpha=0.1, tol=1e-10, solver="newton-cholesky").fit(X, y, sample_weight=s)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-5)
    assert ours.score(X, y, sample_weight=s) == pytest.approx(theirs.score(X, y, sample_weight=s), abs=1e-8)
