"""Pipelines, searches, frames, pickles: the tools that estimators are used with."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import Lasso
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import unpooled as up
from tests.exact.federations import rows

OPTIONS = {"min_rows": 0}


@pytest.fixture
def routed():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_a_grid_search_hands_clients_on(routed):
    X, y, clients = rows("squared", n=120, p=8, sites=6)
    grid = {"alpha": [0.02, 0.1, 0.5]}
    ours = up.FederatedLasso(**OPTIONS).set_fit_request(clients=True)
    search = GridSearchCV(ours, grid, cv=4).fit(X, y, clients=clients)
    peer = GridSearchCV(Lasso(tol=1e-12, max_iter=100_000), grid, cv=4).fit(X, y)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], peer.cv_results_["mean_test_score"], rtol=1e-8
    )
    assert search.best_params_ == peer.best_params_
    assert len(search.best_estimator_.clients_) == 6


def test_scores_with_the_intercepts_of_the_sites(routed):
    X, y, clients = rows("squared", n=120, p=8, sites=6)
    y = y + 5.0 * clients
    ours = up.FederatedLasso(0.01, site_intercepts=True, **OPTIONS).set_fit_request(clients=True)
    mean, own = (
        cross_val_score(model, X, y, cv=4, params={"clients": clients}).min()
        for model in (ours, clone(ours).set_score_request(clients=True))
    )
    assert own > 0.9 > mean


def test_clients_as_ids_and_as_groups(routed):
    X, y, clients = rows("squared", n=120, p=8, sites=6)
    model = up.FederatedLasso(0.1, **OPTIONS).set_fit_request(clients=True)
    scores = cross_val_score(
        model, X, y, cv=GroupKFold(3), params={"clients": clients, "groups": clients}, error_score="raise"
    )
    assert scores.shape == (3,)
    assert (scores > 0.3).all()


def test_a_pipeline_hands_clients_and_weights_on(routed):
    X, y, clients = rows("logistic", n=100, p=5, sites=3)
    s = np.random.default_rng(0).uniform(0.5, 2.0, 100)
    model = up.FederatedLogisticRegression(**OPTIONS).set_fit_request(clients=True, sample_weight=True)
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    pipeline = make_pipeline(scaler, model).fit(X, y, clients=clients, sample_weight=s)
    direct = clone(model).fit(StandardScaler().fit_transform(X), y, clients=clients, sample_weight=s)
    np.testing.assert_array_equal(pipeline[-1].coef_, direct.coef_)
    assert pipeline[-1].clients_ == (0, 1, 2)
    assert pipeline.predict_proba(X).shape == (100, 2)


def test_frames():
    X, y, clients = rows("squared", n=60, p=4, sites=3)
    frame = pd.DataFrame(X, columns=["age", "dose", "time", "mass"])
    sites = pd.Series(clients).map({0: "north", 1: "south", 2: "east"})
    for ids in (sites, sites.astype("category"), sites.tolist()):
        model = up.FederatedLasso(0.1).fit(frame, pd.Series(y), clients=ids)
        assert model.clients_ == ("east", "north", "south")
    assert list(model.feature_names_in_) == list(frame.columns)
    assert model._data.feature_names == tuple(frame.columns)
    np.testing.assert_array_equal(model.predict(frame), model.predict(frame).astype(float))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["dose", "age", "time", "mass"]])


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (up.FederatedLasso(0.1), "squared"),
        (up.FederatedGroupLasso(0.1, groups=["a", "a", "b", "b"]), "squared"),
        (up.FederatedTraceRegressor(0.1, shape=(2, 2)), "squared"),
        (up.FederatedLogisticRegression(), "softmax"),
        (up.FederatedLogisticRegressionCV(n_alphas=3, min_rows=0), "logistic"),
        (up.FederatedElasticNetCV(n_alphas=3, l1_ratio=[0.5, 1.0], min_rows=0), "squared"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value,
)
def test_a_pickle_holds_the_model_and_no_rows(model, kind):
    X, y, clients = rows(kind, n=80, p=4, sites=2)
    X[3, 2] = 0.123456789  # to be looked for
    text = pickle.dumps(model.fit(X, y, clients=clients))
    again = pickle.loads(text)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.summary() == model.summary()
    assert again.certificate_ == model.certificate_
    assert again.get_params().keys() == clone(again).get_params().keys()
    assert np.float64(0.123456789).tobytes() not in text


def test_engine_and_solver_are_those_of_solve():
    X, y, clients = rows("squared", n=60, p=4, sites=3)
    plain = up.FederatedLasso(0.1, tol=1e-12).fit(X, y, clients=clients)
    for options in ({"engine": up.engines.Local()}, {"solver": "fista"}, {"solver": up.ProxNewton()}):
        model = clone(up.FederatedLasso(0.1, tol=1e-12, **options)).fit(X, y, clients=clients)
        np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-5)
    assert model.solver_ == "prox-Newton"
    private = up.FederatedLasso(0.1, second_order=False).fit(X, y, clients=clients)
    assert not {"gram", "hessian"} & set(private.ledger_.kinds)
    refused = up.FederatedLasso(0.1, min_rows=21).fit(X, y, clients=clients)
    assert any("3 of 3 clients have fewer than 21 rows" in note for note in refused.notes_)
    assert "gram" not in refused.ledger_.kinds


def test_summary():
    X, y, clients = rows("squared", n=60, p=4, sites=3)
    model = up.FederatedLasso(0.1).fit(X, y, clients=clients)
    text = model.summary()
    kept = np.count_nonzero(model.coef_)
    assert "FederatedLasso: 60 rows × 4 features of 3 clients" in text
    assert f"{kept} of 4 coefficients are not zero" in text
    assert "duality gap" in text
    assert "1 round" in text
    assert "up" in text
    assert "Gram matrix" in text
    assert model.n_iter_ == model.rounds_ == model.ledger_.rounds == 1
