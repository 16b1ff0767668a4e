"""Confidence intervals of fitted estimators, in the units of the rows."""

import pickle

import numpy as np
import pytest
from scipy import stats

import unpooled as up

LEVEL = 0.9


@pytest.fixture
def rows():
    rng = np.random.default_rng(3)
    site = np.repeat(["Bern", "Chur", "Genf"], [90, 120, 110])
    X = rng.normal(size=(320, 5)) * [1.0, 10.0, 0.1, 1.0, 5.0] + 3.0
    z = X[:, 0] - 0.2 * X[:, 1] + np.where(site == "Chur", 2.0, -1.0) - 2.0
    return X, z + rng.normal(size=320), (z + rng.logistic(size=320) > 0).astype(int), site


def least_squares(A, y):
    """Textbook intervals of the first five coefficients."""
    inverse = np.linalg.inv(A.T @ A)
    beta = inverse @ A.T @ y
    left = len(y) - A.shape[1]
    se = np.sqrt(np.diag(inverse) * np.sum((y - A @ beta) ** 2) / left)
    half = stats.t.ppf(0.5 + LEVEL / 2, left) * se
    return np.column_stack([beta - half, beta + half])[:5]


def maximum_likelihood(A, y):
    """Newton's method and Wald's intervals."""
    beta = np.zeros(A.shape[1])
    for _ in range(30):
        mu = 1 / (1 + np.exp(-A @ beta))
        H = A.T @ (A * (mu * (1 - mu))[:, None])
        beta += np.linalg.solve(H, A.T @ (y - mu))
    half = stats.norm.ppf(0.5 + LEVEL / 2) * np.sqrt(np.diag(np.linalg.inv(H)))
    return np.column_stack([beta - half, beta + half])[:5]


def design(X, site, by_site):
    return np.column_stack([X, site[:, None] == np.unique(site) if by_site else np.ones(len(X))]).astype(
        float
    )


@pytest.mark.parametrize("by_site", [False, True], ids=["one intercept", "site intercepts"])
@pytest.mark.parametrize("standardise", [False, True], ids=["as they came", "standardised"])
def test_with_a_tiny_penalty_those_of_least_squares(rows, standardise, by_site):
    X, y, _, site = rows
    model = up.FederatedLasso(1e-6, standardise=standardise, site_intercepts=by_site)
    model.fit(X, y, clients=site)
    expected = least_squares(design(X, site, by_site), y)
    np.testing.assert_allclose(model.confidence_intervals(LEVEL, lam_node=0.0), expected, rtol=1e-5)
    some = model.confidence_intervals(LEVEL, columns=[3, 1], lam_node=0.0)
    np.testing.assert_allclose(some, expected[[3, 1]], rtol=1e-5)


@pytest.mark.parametrize("by_site", [False, True], ids=["one intercept", "site intercepts"])
@pytest.mark.parametrize("standardise", [False, True], ids=["as they came", "standardised"])
def test_with_a_tiny_penalty_those_of_maximum_likelihood(rows, standardise, by_site):
    X, _, sick, site = rows
    model = up.FederatedLogisticRegression(1e3, standardise=standardise, site_intercepts=by_site, tol=1e-4)
    model.fit(X, sick, clients=site)
    expected = maximum_likelihood(design(X, site, by_site), sick)
    found = model.confidence_intervals(LEVEL, lam_node=0.0, base="support")
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_of_a_cross_validated_lasso(rows):
    X, y, _, site = rows
    model = up.FederatedLassoCV(standardise=True).fit(X, y, clients=site)
    found = model.inference(level=0.99)
    assert np.array_equal(model.confidence_intervals(0.99), found.interval())
    np.testing.assert_allclose(found.coef, model.coef_)
    low, high = found.interval().T
    assert np.all((low < [1.0, -0.2, 0.0, 0.0, 0.0]) & (high > [1.0, -0.2, 0.0, 0.0, 0.0]))
    assert set(found.selected(0.01)) == {0, 1}


def test_refused(rows):
    X, y, _, site = rows
    model = up.FederatedLasso(0.1).fit(X, y, clients=site)
    with pytest.raises(ValueError, match="pickled model does not contain its rows"):
        pickle.loads(pickle.dumps(model)).confidence_intervals()
    with pytest.raises(ValueError, match="supports Squared and Logistic"):
        up.FederatedPoissonRegressor(0.1).fit(X, np.abs(y).round(), clients=site).confidence_intervals()
    with pytest.raises(ValueError, match="rows of equal weight"):
        up.FederatedLasso(0.1).fit(X, y, clients=site, sample_weight=1 + X[:, 0] ** 2).confidence_intervals()
    own = up.FederatedLasso(0.1, site_intercepts=True).fit(X, y, clients=site)
    with pytest.raises(ValueError, match="does not support site intercepts"):
        own.confidence_intervals(covariance="sandwich")
    for function in (up.inference.influence, up.inference.stability_selection):
        with pytest.raises(ValueError, match="does not support site intercepts"):
            function(own.problem_, own._data)
    with pytest.raises(ValueError, match="does not support site intercepts"):
        up.inference.heterogeneity(own.problem_, own._data, own.fit_result_)


def test_a_pickle_holds_no_gram_matrix(rows):
    X, y, _, site = rows
    model = up.FederatedLasso(0.1).fit(X, y, clients=site)
    assert model.fit_result_.statistics
    assert not pickle.loads(pickle.dumps(model)).fit_result_.statistics
