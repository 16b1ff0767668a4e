"""Columns that are the same in all rows of a site, beside site intercepts: what a fit makes of them."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression

import unpooled as up
from tests.exact.federations import LOSSES, multilevel
from unpooled.preprocessing import prepare

NAMES = ("age", "school mean", "income", "school type", "score")
VARIES = [0, 2, 4]
FREE = np.array([0.0, 0.0, 1.0, 1.0, 1.0])


def absorbed(names="'school mean'", free=", left unpenalised,"):
    return pytest.warns(UserWarning, match=rf"{names}{free} (is|are) constant within every site")


@pytest.mark.parametrize("solver", ["auto", "prox_newton", "anderson", "fista"])
@pytest.mark.parametrize("kind", LOSSES)
def test_an_unpenalised_one_is_zero_and_changes_no_other(kind, solver):
    X, y, clients = multilevel(kind)
    data = up.FederatedData.from_arrays(X, y, clients, feature_names=NAMES)
    without = up.FederatedData.from_arrays(X[:, VARIES], y, clients)
    with absorbed():
        fit = up.solve(up.Problem(LOSSES[kind], up.L1(0.05, FREE), "sites"), data, solver=solver, tol=1e-7)
    truth = up.solve(up.Problem(LOSSES[kind], up.L1(0.05, FREE[VARIES]), "sites"), without, tol=1e-9)
    assert fit.converged
    assert not fit.w[[1, 3]].any()
    np.testing.assert_allclose(fit.w[VARIES], truth.w, atol=1e-5)
    assert fit.certificate.objective == pytest.approx(truth.certificate.objective, abs=1e-8)
    assert "its coefficient is 0. To estimate it, give all sites" in fit.notes[-1]


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_without_a_penalty_scikit_learns_with_dummies(store):
    X, y, clients = multilevel("squared")
    data = up.FederatedData.from_arrays(store(X), y, clients)
    with absorbed("columns 1 and 3", free=""):
        fit = up.solve(up.Problem(up.Squared(), up.Zero(), "sites"), data)
    dummies = (clients[:, None] == np.unique(clients)).astype(float)
    truth = LinearRegression(fit_intercept=False).fit(np.hstack([X[:, VARIES], dummies]), y)
    np.testing.assert_allclose(fit.w, np.insert(truth.coef_[:3], [1, 2], 0.0), atol=1e-8)


@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_paths_and_cross_validation(kind):
    X, y, clients = multilevel(kind)
    data = up.FederatedData.from_arrays(X, y, clients, feature_names=NAMES)
    without = up.FederatedData.from_arrays(X[:, VARIES], y, clients)
    task = up.Problem(LOSSES[kind], up.L1(0.05, FREE), "sites")
    with absorbed():
        path = up.path(task, data, n_lambdas=3, ratio=0.1)
    with absorbed():
        found = up.cross_validate(task, data, folds=3, n_lambdas=3, ratio=0.1, min_rows=0)
    truth = up.cross_validate(
        up.Problem(LOSSES[kind], up.L1(0.05, FREE[VARIES]), "sites"),
        without,
        folds=3,
        n_lambdas=3,
        ratio=0.1,
        min_rows=0,
    )
    for coefs in (path.coefs, found.path.coefs):
        assert not coefs[:, [1, 3]].any()
        np.testing.assert_allclose(coefs[:, VARIES], truth.path.coefs, atol=1e-4)
    np.testing.assert_allclose(found.losses, truth.losses, rtol=1e-5)
    assert "constant within every site" in path.notes[-1]


def test_estimators_warn_and_take_them_with_one_intercept():
    X, y, clients = multilevel("squared")
    with absorbed("column 1"):
        own = up.FederatedLasso(0.05, site_intercepts=True, unpenalised=[1]).fit(X, y, clients=clients)
    assert own.coef_[1] == 0.0
    assert "constant within every site" in own.summary()
    one = up.FederatedLasso(0.05, unpenalised=[1]).fit(X, y, clients=clients)  # as the warning advises
    assert one.coef_[1] != 0.0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"alpha": 0.0}, "columns 1 and 3 are constant within every site"),
        (
            {"alpha": 0.1, "unpenalised": [1, 3]},
            "columns 1 and 3, left unpenalised, are constant within every",
        ),
        ({"alpha": 0.1, "unpenalised": [3]}, "column 3, left unpenalised, is constant within every site"),
    ],
)
def test_words_and_line_of_the_warning(options, said):
    X, y, clients = multilevel("squared")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = up.FederatedLasso(**options, site_intercepts=True).fit(X, y, clients=clients)
        data = up.FederatedData.from_arrays(X, y, clients)
        up.path(up.Problem(up.Squared(), up.L1(0.1, FREE), "sites"), data, n_lambdas=2)
        up.FederatedLassoCV(cv=2, n_alphas=2, site_intercepts=True, unpenalised=[1]).fit(
            X, y, clients=clients
        )
    assert len(caught) == 3
    assert {each.filename for each in caught} == {__file__}
    text = str(caught[0].message)
    assert text.startswith(said)
    assert model.notes_[-1] == text
    one = "column 3," in said
    assert ("so its coefficient is 0. To estimate it, give" in text) == one
    assert ("so their coefficients are 0. To estimate them, give" in text) != one
    assert text.endswith("otherwise leave the column out." if one else "otherwise leave the columns out.")


def test_a_fit_that_stops_early_points_at_the_users_line():
    X, y, clients = multilevel("logistic")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        up.FederatedLogisticRegression(solver="anderson", max_rounds=3).fit(X, y, clients=clients)
        up.FederatedLogisticRegressionCV(solver="anderson", max_rounds=3, Cs=[0.1, 1.0], cv=2).fit(
            X, y, clients=clients
        )
    assert [each.category for each in caught] == [ConvergenceWarning] * 2
    assert {each.filename for each in caught} == {__file__}


def test_standardising_finds_those_that_are_penalised_too():
    X, y, clients = multilevel("squared")
    data = up.FederatedData.from_arrays(X, y, clients, feature_names=NAMES)
    [note] = prepare(data, site_intercepts=True).notes
    assert note.startswith("column 'school mean' and column 'school type' are constant within every site")
    assert not prepare(data).notes  # one intercept for all tells them apart
    X[0, 3] += 1.0
    data = up.FederatedData.from_arrays(X, y, clients, feature_names=NAMES)
    [note] = prepare(data, site_intercepts=True).notes
    assert note.startswith("column 'school mean' is constant within every site")


def test_combinations_that_are_constant_within_sites():
    """Two free columns whose difference is: their sum is known, and the rest of the fit."""
    X, y, clients = multilevel("squared")
    X[:, 2] = X[:, 0] + X[:, 1]
    weights = np.array([0.0, 1.0, 0.0, 1.0, 1.0])
    data = up.FederatedData.from_arrays(X, y, clients)
    fit = up.solve(up.Problem(up.Squared(), up.L1(0.05, weights), "sites"), data)
    one = up.FederatedData.from_arrays(X[:, [0, 4]], y, clients)
    truth = up.solve(up.Problem(up.Squared(), up.L1(0.05, weights[[0, 4]]), "sites"), one)
    assert fit.converged
    assert fit.w[0] + fit.w[2] == pytest.approx(truth.w[0], abs=1e-6)
    assert np.abs(fit.w).max() < 10.0
    assert fit.w[4] == pytest.approx(truth.w[1], abs=1e-6)


def test_targets_that_say_nothing_raise_no_alarm():
    """Every site has one label: all coefficients are zero, whatever the columns are."""
    X, y, clients = multilevel("logistic")
    data = up.FederatedData.from_arrays(X, clients % 2.0, clients)
    fit = up.solve(up.Problem(up.Logistic(), up.L1(0.05, FREE), "sites"), data)
    assert not fit.w.any()
    with absorbed("column 1"):  # at a large λ it is still said
        data = up.FederatedData.from_arrays(X, y, clients)
        assert not up.solve(up.Problem(up.Logistic(), up.L1(9.0, FREE), "sites"), data).w[1:].any()
