"""Columns that are the same in all rows of a site, beside site intercepts: they have no estimate."""

import numpy as np
import pytest
from scipy import sparse

import unpooled as up
from tests.exact.federations import multilevel
from tests.inference.pooled import maximum_likelihood, sigmoid
from unpooled.inference import debiased_lasso

NAMES = ("age", "school mean", "income", "school type", "score")
VARIES = [0, 2, 4]


def model(kind, **options):
    if kind == "squared":
        return up.FederatedLasso(1e-6, site_intercepts=True, **options)
    return up.FederatedLogisticRegression(1e3, site_intercepts=True, tol=1e-4, **options)


def dummies_fit(kind, X, y, clients):
    """Estimates and standard errors of the columns that vary, with a dummy for every site."""
    D = (clients[:, None] == np.unique(clients)).astype(float)
    A = np.hstack([X[:, VARIES], D])
    if kind == "squared":
        b = np.linalg.lstsq(A, y, rcond=None)[0]
        v = np.full(len(y), len(y) - A.shape[1]) / np.sum((y - A @ b) ** 2)
    else:
        b = maximum_likelihood(A, y)
        v = sigmoid(A @ b) * sigmoid(-A @ b)
    return b[:3], np.sqrt(np.diag(np.linalg.inv((A.T * v) @ A)))[:3]


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("standardise", [False, True])
@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_the_others_are_those_of_dummies(kind, standardise, store):
    X, y, clients = multilevel(kind)
    fit = model(kind, standardise=standardise).fit(store(X), y, clients=clients)
    found = fit.inference(lam_node=0)
    estimate, error = dummies_fit(kind, X, y, clients)
    np.testing.assert_allclose(found.estimate[VARIES], estimate, atol=2e-3)
    np.testing.assert_allclose(found.standard_error[VARIES], error, rtol=2e-2)
    for numbers in (found.estimate, found.standard_error, found.p_value, found.adjusted):
        assert np.isnan(numbers[[1, 3]]).all()
        assert np.isfinite(numbers[VARIES]).all()
    [note] = [note for note in found.notes if "constant" in note]
    assert note.startswith("x1 and x3 are constant within every site")
    assert note.endswith(
        "Give all sites one intercept (intercept=True; site_intercepts=False) to estimate them"
    )


def test_tables_of_what_has_no_estimate():
    X, y, clients = multilevel("squared")
    data = up.FederatedData.from_arrays(X, y, clients, feature_names=NAMES)
    found = debiased_lasso(up.Problem(up.Squared(), up.L1(0.05), "sites"), data)
    assert np.isnan(found.interval()[[1, 3]]).all()
    assert not {1, 3} & set(found.selected().tolist())
    assert "school mean and school type are constant within every site" in found.summary()
    assert found.to_frame().loc["school type"].drop("coef").isna().all()
    assert "Inference(" in repr(found)


@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_asking_for_that_column_alone(kind):
    X, y, clients = multilevel(kind)
    fit = model(kind).fit(X, y, clients=clients)
    with pytest.raises(ValueError, match=r"x3 is constant within every site.*intercept=True.*estimate it$"):
        fit.inference([3])
    assert np.isnan(fit.inference([3, 0]).estimate).tolist() == [True, False]


def test_equal_up_to_rounding_is_equal():
    """A mean that each row works out in another order; a real spread of the same column is kept."""
    X, y, clients = multilevel("squared")
    X[:, 1] *= 1.0 + 1e-16 * np.random.default_rng(1).integers(-4, 5, len(y))
    assert len(np.unique(X[clients == 0, 1])) > 1
    assert np.isnan(model("squared").fit(X, y, clients=clients).inference().estimate[1])
    X[:, 1] = 1e6 + 1e-3 * np.random.default_rng(1).standard_normal(len(y))
    found = model("squared").fit(X, y, clients=clients).inference(lam_node=0)
    D = (clients[:, None] == np.unique(clients)).astype(float)
    A = np.hstack([X[:, [0, 2, 4]], 1e3 * (X[:, [1]] - 1e6), D])
    assert found.estimate[1] == pytest.approx(1e3 * np.linalg.lstsq(A, y, rcond=None)[0][3], rel=1e-3)


def test_a_column_that_varies_at_one_site_has_an_estimate():
    X, y, clients = multilevel("squared")
    X[clients == 5, 1] += np.random.default_rng(1).standard_normal(np.sum(clients == 5))
    found = model("squared").fit(X, y, clients=clients).inference(lam_node=0)
    D = (clients[:, None] == np.unique(clients)).astype(float)
    truth = np.linalg.lstsq(np.hstack([X[:, [0, 1, 2, 4]], D]), y, rcond=None)[0]
    np.testing.assert_allclose(found.estimate[[0, 1, 2, 4]], truth[:4], atol=1e-4)


def test_columns_that_differ_by_a_constant_of_the_site():
    """Collinear within sites alone: the inverse is refused, the nodewise lasso names them."""
    X, y, clients = multilevel("squared")
    X[:, 4] = X[:, 0] + X[:, 1]
    fit = model("squared").fit(X, y, clients=clients)
    with pytest.raises(ValueError, match="singular"):
        fit.inference(lam_node=0)
    found = fit.inference()
    assert (np.abs(found.estimate[VARIES]) < 10).all()
    [note] = [note for note in found.notes if "collinear" in note]
    assert note.startswith(
        "x0 and x4 are almost collinear with the other columns, which explain more than 95%"
    )


def test_nothing_but_constants():
    X, y, clients = multilevel("squared")
    data = up.FederatedData.from_arrays(X[:, [1, 3]], y, clients)
    found = debiased_lasso(up.Problem(up.Squared(), up.L1(0.05), "sites"), data)
    assert np.isnan(found.estimate).all()
    assert "x0 and x1 are constant within every site" in found.summary()
