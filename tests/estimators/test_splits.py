"""How rows lie over clients does not matter: not one-row clients, not clients of one class."""

import numpy as np
import pandas as pd
import pytest

import unpooled as up
from tests.exact.federations import rows

OPTIONS = {"min_rows": 0, "tol": 1e-13}
FOLDS = {"cv": np.arange(60) % 4, "min_rows": 0, "tol": 1e-12}
MODELS = {
    "lasso": ("squared", up.FederatedLasso(0.1, **OPTIONS)),
    "net": ("squared", up.FederatedElasticNet(0.1, **OPTIONS)),
    "group": ("squared", up.FederatedGroupLasso(0.1, groups=[0, 0, 1, 1, 2, 2], **OPTIONS)),
    "trace": ("squared", up.FederatedTraceRegressor(0.1, shape=(3, 2), **OPTIONS)),
    "logistic": ("logistic", up.FederatedLogisticRegression(1.0, class_weight="balanced", **OPTIONS)),
    "softmax": ("softmax", up.FederatedLogisticRegression(1.0, **OPTIONS)),
    "poisson": ("poisson", up.FederatedPoissonRegressor(0.1, **OPTIONS)),
    "huber": ("huber", up.FederatedHuberRegressor(0.1, **OPTIONS)),
    "lasso cv": ("squared", up.FederatedLassoCV(n_alphas=5, **FOLDS)),
    "logistic cv": ("logistic", up.FederatedLogisticRegressionCV(n_alphas=3, **FOLDS)),
}
K = (2, 3, 17, 50)


def splits(y):
    """Names of the clients: equal ones, then uneven ones (the first of one row), then by the target."""
    order = np.random.default_rng(4).permutation(60)
    for k in K:
        yield np.arange(60)[order] % k
        yield np.maximum(np.arange(60) - (60 - k), 0)[order]  # k − 1 clients of one row and a large one
    yield np.array([f"site {int(t > np.median(y))}" for t in y])


@pytest.mark.parametrize("model", MODELS)
def test_the_split_does_not_matter(model):
    kind, model = MODELS[model]
    X, y, _ = rows(kind, n=60, p=6)
    one = {"coef": model.fit(X, y).coef_, "intercept": model.intercept_}
    for clients in splits(y):
        model.fit(X, y, clients=clients)
        np.testing.assert_allclose(model.coef_, one["coef"], atol=1e-10)
        np.testing.assert_allclose(model.intercept_, one["intercept"], atol=1e-10)
        assert len(model.clients_) == len(set(clients.tolist()))


def test_the_split_of_a_matrix_does_not_matter():
    rng = np.random.default_rng(0)
    pairs = np.argwhere(rng.random((8, 6)) < 0.7)
    y = rng.standard_normal((8, 1))[pairs[:, 0], 0] + 0.2 * rng.standard_normal(len(pairs))
    model = up.FederatedMatrixCompletion(0.05, tol=1e-11)
    one = model.fit(pairs, y).predict(pairs)
    for clients in (pairs[:, 0], pairs[:, 1] % 2, np.arange(len(pairs))):
        np.testing.assert_allclose(model.fit(pairs, y, clients=clients).predict(pairs), one, atol=1e-5)
        assert model.certificate_.relative <= 1e-11


def test_a_client_of_weight_zero_is_not_there():
    X, y, clients = rows("squared", n=60, p=6, sites=3)
    s = np.where(clients == 1, 0.0, 1.0)
    model = up.FederatedLasso(0.1).fit(X, y, clients=clients, sample_weight=s)
    without = up.FederatedLasso(0.1).fit(X[clients != 1], y[clients != 1], clients=clients[clients != 1])
    assert model.clients_ == (0, 2)
    np.testing.assert_array_equal(model.coef_, without.coef_)


def test_federated_data_bring_everything_with_them():
    X, y, clients = rows("squared", n=60, p=6, sites=3)
    s = np.random.default_rng(0).uniform(0.5, 2, 60)
    names = list("abcdef")
    frame = pd.DataFrame(X, columns=names)
    data = up.FederatedData.from_arrays(X, y, clients, s, feature_names=names)
    direct = up.FederatedLasso(0.1).fit(data)
    arrays = up.FederatedLasso(0.1).fit(X, y, clients=clients, sample_weight=s)
    np.testing.assert_array_equal(direct.coef_, arrays.coef_)
    np.testing.assert_allclose(np.sort(direct.predict(data)), np.sort(direct.predict(frame)), rtol=1e-12)
    assert list(direct.feature_names_in_) == names
    assert direct.n_features_in_ == 6


def test_federated_data_with_weights_of_their_own():
    """π_k that do not count rows: each client's mean loss counts the same."""
    X, y, clients = rows("logistic", n=60, p=4, sites=2)
    clients = np.where(np.arange(60) < 15, 0, clients)
    data = up.FederatedData.from_arrays(X, y, clients, weights="uniform")
    sizes = np.bincount(clients)[clients]
    s = 60 / (2 * sizes)  # the same shares as sample weights
    model = up.FederatedLogisticRegression(0.7, tol=1e-11).fit(data)
    same = up.FederatedLogisticRegression(0.7, tol=1e-11).fit(X, y, clients=clients, sample_weight=s)
    np.testing.assert_allclose(model.coef_, same.coef_, atol=1e-9)
    np.testing.assert_array_equal(model.classes_, [0.0, 1.0])
