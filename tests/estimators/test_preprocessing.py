"""Standardising, missing values, unpenalised columns and site intercepts, inside the estimators."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Lasso, LassoCV, LogisticRegression
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import unpooled as up

SITES = np.array(["Bern", "Genf", "Basel", "Chur"])


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    site = rng.integers(0, 4, 240)
    X = rng.normal(size=(240, 8)) * np.logspace(-2, 2, 8) + np.linspace(-50, 50, 8)
    y = X[:, 1] / 0.1 - X[:, 6] / 40 + np.array([-3.0, 0.0, 1.0, 4.0])[site] + rng.normal(size=240)
    return X, y, SITES[site]


def test_standardised_as_in_a_pipeline(rows):
    X, y, site = rows
    model = up.FederatedLasso(0.1, standardise=True, tol=1e-12).fit(X, y, clients=site)
    pooled = make_pipeline(StandardScaler(), Lasso(0.1, tol=1e-12)).fit(X, y)
    np.testing.assert_allclose(model.predict(X), pooled.predict(X), rtol=1e-8)
    np.testing.assert_allclose(model.coef_, pooled[-1].coef_ / pooled[0].scale_, rtol=1e-7)
    assert model.rounds_ == 2  # one for the moments, one for the statistics


def test_standardised_without_an_intercept_scales_only(rows):
    X, y, site = rows
    X = X - X.mean(axis=0) + X.std(axis=0)
    model = up.FederatedLasso(0.1, standardise=True, fit_intercept=False, tol=1e-10).fit(X, y, clients=site)
    scale = X.std(axis=0)
    pooled = Lasso(0.1, fit_intercept=False, tol=1e-12).fit(X / scale, y)
    assert model.intercept_ == 0.0
    np.testing.assert_allclose(model.coef_ * scale, pooled.coef_, rtol=1e-6, atol=1e-9)


def test_standardised_cross_validation_is_that_of_scaled_rows(rows):
    X, y, site = rows
    folds = np.arange(len(y)) % 5
    model = up.FederatedLassoCV(standardise=True, cv=folds, n_alphas=20, min_rows=0).fit(X, y, clients=site)
    scaled = StandardScaler().fit_transform(X)
    splits = [(np.flatnonzero(folds != f), np.flatnonzero(folds == f)) for f in range(5)]
    pooled = LassoCV(alphas=model.alphas_, cv=splits, tol=1e-10).fit(scaled, y)
    np.testing.assert_allclose(model.mse_path_, pooled.mse_path_, rtol=1e-6)
    assert model.alpha_ == pytest.approx(pooled.alpha_)


def test_sparse_rows_are_scaled_and_stay_sparse(rows):
    X, y, site = rows
    X = np.where(np.abs(X) > 20, X, 0.0)
    dense, csr = (
        up.FederatedLasso(0.1, standardise=True, min_rows=0, tol=1e-11).fit(M, y, clients=site)
        for M in (X, sparse.csr_array(X))
    )
    np.testing.assert_allclose(csr.coef_, dense.coef_, rtol=1e-6, atol=1e-9)
    assert any("not centred" in note for note in csr.notes_) or csr.intercept_ == pytest.approx(
        dense.intercept_
    )


def test_missing_values_become_the_mean_over_all_clients(rows):
    X, y, site = rows
    X = X.copy()
    X[np.random.default_rng(1).random(X.shape) < 0.05] = np.nan
    with pytest.raises(ValueError, match="NaN: missing='mean'"):
        up.FederatedLasso(0.1).fit(X, y, clients=site)
    model = up.FederatedLasso(0.1, missing="mean", tol=1e-12).fit(X, y, clients=site)
    pooled = make_pipeline(SimpleImputer(), Lasso(0.1, tol=1e-12)).fit(X, y)
    np.testing.assert_allclose(model.predict(X), pooled.predict(X), rtol=1e-7)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(X), model.predict(X))
    assert model.__sklearn_tags__().input_tags.allow_nan
    with pytest.raises(ValueError, match="missing must be"):
        up.FederatedLasso(0.1, missing="median").fit(rows[0], y, clients=site)


def test_filled_columns_have_the_variance_of_what_was_observed(rows):
    """Scaled by the observed values and then filled; scikit-learn's pipeline fills and then scales."""
    X, y, site = rows
    X = X.copy()
    X[np.random.default_rng(1).random(240) < 0.8, 1] = np.nan
    q = 1.0 - np.isnan(X).mean(axis=0)
    model = up.FederatedLasso(0.1, standardise=True, missing="mean", tol=1e-12).fit(X, y, clients=site)
    np.testing.assert_allclose(model._prepared.data.X.var(axis=0), q)
    Z = make_pipeline(SimpleImputer(), StandardScaler()).fit_transform(X)
    own = Lasso(0.1, tol=1e-12).fit(Z * np.sqrt(q), y)
    np.testing.assert_allclose(model.predict(X), own.predict(Z * np.sqrt(q)), rtol=1e-7)
    data = up.FederatedData.from_arrays(X, y, site, allow_missing=True)
    prepared = up.preprocessing.prepare(data, missing="mean")
    theirs = up.solve(up.Problem(up.Squared(), up.L1(0.1, np.sqrt(q)), True), prepared.data, tol=1e-12)
    filled = Lasso(0.1, tol=1e-12).fit(Z, y)
    np.testing.assert_allclose(theirs.w * np.sqrt(q), filled.coef_, rtol=1e-6, atol=1e-9)
    assert abs(filled.coef_[1]) > abs(model.coef_[1]) * np.nanstd(X[:, 1]) * np.sqrt(q[1])  # a larger penalty


def test_unpenalised_columns_are_fitted_freely(rows):
    pandas = pytest.importorskip("pandas")
    X, y, site = rows
    frame = pandas.DataFrame(X, columns=list("abcdefgh"))
    model = up.FederatedLasso(1e6, unpenalised=["b", "g"], tol=1e-12).fit(frame, y, clients=site)
    free = np.column_stack([np.ones(len(y)), X[:, [1, 6]]])
    expected = np.linalg.lstsq(free, y, rcond=None)[0]
    assert model.intercept_ == pytest.approx(expected[0], rel=1e-6)
    np.testing.assert_allclose(model.coef_[[1, 6]], expected[1:], rtol=1e-6)
    assert np.count_nonzero(model.coef_) == 2
    by_number = up.FederatedLasso(1e6, unpenalised=[1, 6], tol=1e-12).fit(X, y, clients=site)
    np.testing.assert_allclose(by_number.coef_, model.coef_, rtol=1e-9)
    with pytest.raises(ValueError, match="no column 'z'"):
        up.FederatedLasso(1.0, unpenalised=["z"]).fit(frame, y, clients=site)


def dummies(X, site):
    return np.column_stack([X, site[:, None] == np.unique(site)[None, :]]).astype(float)


def test_site_intercepts_are_pooled_dummies(rows):
    X, y, site = rows
    scaled = StandardScaler().fit_transform(X)
    model = up.FederatedLasso(0.1, site_intercepts=True, tol=1e-13).fit(scaled, y, clients=site)
    problem = up.Problem(up.Squared(), up.L1(0.1, weights=[1.0] * 8 + [0.0] * 4))
    pooled = up.solve(
        problem, up.FederatedData.from_arrays(dummies(scaled, site), y, np.zeros(240, int)), tol=1e-13
    )
    np.testing.assert_allclose(model.coef_, pooled.w[:8], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(model.site_intercepts_.values, pooled.w[8:], rtol=1e-8)
    np.testing.assert_allclose(
        model.predict(scaled, clients=site), dummies(scaled, site) @ pooled.w, rtol=1e-7
    )
    share = np.array([np.mean(site == name) for name in np.unique(site)])
    assert model.intercept_ == pytest.approx(share @ pooled.w[8:])
    assert model.score(scaled, y, clients=site) == r2_score(y, model.predict(scaled, clients=site))
    assert model.score(scaled, y, clients=site) > model.score(scaled, y) + 0.01
    unknown = model.predict(scaled[:3], clients=["Lugano", "Bern", "Lugano"])
    assert unknown[0] == pytest.approx(model.predict(scaled[:1])[0])
    with pytest.raises(ValueError, match="one per row"):
        model.predict(scaled, clients=site[:5])


def test_site_intercepts_of_classes(rows):
    X, y, site = rows
    label = np.where(y > np.median(y), "yes", "no")
    model = up.FederatedLogisticRegression(C=1.0, site_intercepts=True, standardise=True, min_rows=0)
    model.fit(X, label, clients=site)
    assert model.score(X, label, clients=site) == np.mean(model.predict(X, clients=site) == label)
    # scikit-learn penalises dummies; on a scale of 1e4 that is next to nothing
    wide = dummies(StandardScaler().fit_transform(X), site) * np.repeat([1.0, 1e4], [8, 4])
    pooled = LogisticRegression(
        l1_ratio=1.0, solver="liblinear", fit_intercept=False, tol=1e-8, max_iter=10_000
    )
    pooled.fit(wide, label)
    np.testing.assert_allclose(
        model.predict_proba(X, clients=site), pooled.predict_proba(wide), rtol=0, atol=1e-4
    )
    assert np.array_equal(model.predict(X, clients=site), pooled.predict(wide))


def test_site_intercepts_of_counts(rows):
    """At the optimum the predictions of each site sum to its counts."""
    X, _, site = rows
    scaled = StandardScaler().fit_transform(X)
    counts = np.random.default_rng(2).poisson(np.exp(0.3 * scaled[:, 1] + 0.9 * (site == "Bern")))
    model = up.FederatedPoissonRegressor(0.01, site_intercepts=True, tol=1e-12)
    predicted = model.fit(scaled, counts, clients=site).predict(scaled, clients=site)
    for name in SITES:
        assert predicted[site == name].sum() == pytest.approx(counts[site == name].sum(), rel=1e-6)


def test_the_ledger_and_the_summary_tell_of_it(rows):
    X, y, site = rows
    model = up.FederatedLasso(0.1, standardise=True, site_intercepts=True).fit(X, y, clients=site)
    assert model.rounds_ == 3
    assert {"intercept"} < set(model.ledger_.kinds)
    assert "3 rounds" in model.summary()


def test_pickles_hold_no_rows(rows):
    X, y, _ = rows
    model = up.FederatedLasso(0.1, standardise=True).fit(np.repeat(X, 40, axis=0), np.repeat(y, 40))
    assert len(pickle.dumps(model)) < 10_000


LINEAR = {
    "lasso": up.FederatedLasso(0.1),
    "lasso cv": up.FederatedLassoCV(n_alphas=3, cv=2),
    "elastic net": up.FederatedElasticNet(0.1),
    "elastic net cv": up.FederatedElasticNetCV(n_alphas=3, cv=2),
    "group lasso": up.FederatedGroupLasso(0.1, groups=[0, 0, 1, 1, 2, 2, 3, 3]),
    "group lasso cv": up.FederatedGroupLassoCV(n_alphas=3, cv=2, groups=[0, 0, 1, 1, 2, 2, 3, 3]),
    "huber": up.FederatedHuberRegressor(alpha=0.1),
    "poisson": up.FederatedPoissonRegressor(0.1),
    "logistic": up.FederatedLogisticRegression(),
    "logistic cv": up.FederatedLogisticRegressionCV(Cs=[0.1, 1.0], cv=2),
}


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", LINEAR)
def test_predictions_are_filled_where_no_row_of_the_fit_missed_a_value(rows, name, store):
    """By the pooled means, as the pooled imputer does it."""
    X, y, site = rows
    X = StandardScaler().fit_transform(X) + np.arange(8.0)
    y = {"poisson": np.round(np.abs(y)), "logistic": y > np.median(y)}.get(name.split()[0], y)
    new = X[:40].copy()
    new[np.random.default_rng(2).random(new.shape) < 0.2] = np.nan
    filled = SimpleImputer().fit(X).transform(new)
    model = clone(LINEAR[name]).set_params(missing="mean").fit(store(X), y, clients=site)
    for ask in ("predict", *(("predict_proba",) if name.startswith("logistic") else ())):
        found = getattr(model, ask)(store(new))
        np.testing.assert_allclose(found, getattr(model, ask)(store(filled)), rtol=1e-9)
        again = getattr(pickle.loads(pickle.dumps(model)), ask)(store(new))
        np.testing.assert_array_equal(again, found)
    own = clone(LINEAR[name]).set_params(missing="mean", site_intercepts=True)
    own.fit(store(X), y, clients=site)
    at_home = own.predict(store(new), clients=site[:40])
    np.testing.assert_allclose(at_home, own.predict(store(filled), clients=site[:40]), rtol=1e-9)


def test_federated_rows_with_missing_values_are_filled_or_refused(rows):
    X, y, site = rows
    gone = X.copy()
    gone[3, 2] = np.nan
    new = up.FederatedData.from_arrays(gone, y, site, allow_missing=True)
    whole = up.FederatedData.from_arrays(SimpleImputer().fit(X).transform(gone), y, site)
    data = up.FederatedData.from_arrays(X, y, site)
    model = up.FederatedLasso(0.1, missing="mean").fit(data)
    np.testing.assert_allclose(model.predict(new), model.predict(whole), rtol=1e-9)
    with pytest.raises(ValueError, match="X has missing values: missing='mean' fills them"):
        up.FederatedLasso(0.1).fit(data).predict(new)


def test_knowing_the_means_takes_one_round(rows):
    X, y, site = rows
    one = up.FederatedLasso(0.1).fit(X, y, clients=site)
    two = up.FederatedLasso(0.1, missing="mean").fit(X, y, clients=site)
    assert two.rounds_ == one.rounds_ + 1
    np.testing.assert_array_equal(two.coef_, one.coef_)
