"""Scaling, centring, missing values, and the way back, against scikit-learn on the pooled rows."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Lasso
from sklearn.preprocessing import StandardScaler

import unpooled as up
from tests.exact.federations import LOSSES, targets
from unpooled.preprocessing import prepare

UNITS = np.array([1.0, 100.0, 0.01, 5.0, 1.0, 2.0])
NAMES = ["age", "income", "dose", "weight", "height", "score"]


def rows(kind="squared", n=240, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 6))
    y = targets(kind, Z @ [1.0, -1.0, 0.5, 0.0, 0.0, 0.0], rng)
    return Z * UNITS + 3 * UNITS, y, np.array(["b", "a", "c", "d"])[np.arange(n) % 4]


def federated(kind="squared", **options):
    X, y, clients = rows(kind)
    return up.FederatedData.from_arrays(X, y, clients, feature_names=NAMES, **options)


def test_the_lasso_on_scaled_data_is_scikit_learns():
    X, y, _ = rows()
    prepared = prepare(federated())
    scaler = StandardScaler().fit(X)
    order = np.argsort(rows()[2], kind="stable")
    np.testing.assert_allclose(prepared.data.X, scaler.transform(X)[order], rtol=1e-10, atol=1e-12)
    fit = up.solve(prepared.problem(up.Squared(), up.L1(0.1)), prepared.data, tol=1e-12)
    lasso = Lasso(0.1, tol=1e-13, max_iter=100_000).fit(scaler.transform(X), y)
    np.testing.assert_allclose(fit.w, lasso.coef_, atol=1e-8)
    coef, intercept = prepared.back(fit.w, fit.intercept)
    np.testing.assert_allclose(X @ coef + intercept, lasso.predict(scaler.transform(X)), atol=1e-7)
    assert prepared.ledger.rounds == 1


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("center", [True, False])
def test_back_gives_the_same_margins(kind, center):
    data = federated(kind)
    prepared = prepare(data, center=center)
    problem = prepared.problem(LOSSES[kind], up.L1(0.02))
    fit = up.solve(problem, prepared.data)
    coef, intercept = prepared.back(fit.w, fit.intercept)
    assert np.shape(intercept) == np.shape(fit.intercept)
    expected = prepared.data.X @ fit.w + fit.intercept
    np.testing.assert_allclose(data.X @ coef + intercept, expected, atol=1e-9)
    at = problem.smooth(fit.w, prepared.data, fit.intercept)
    assert problem.smooth(coef, data, intercept) == pytest.approx(at, rel=1e-10)


@pytest.mark.parametrize("kind", ["squared", "softmax"])
def test_back_takes_paths(kind):
    data = federated(kind)
    prepared = prepare(data)
    path = up.path(prepared.problem(LOSSES[kind], up.L1(0.1)), prepared.data, n_lambdas=4)
    coefs, intercepts = prepared.back(path)
    again = prepared.back(path.coefs, path.intercepts)
    np.testing.assert_array_equal(coefs, again[0])
    for i in range(4):
        coef, intercept = prepared.back(*path.model(i))
        np.testing.assert_array_equal(coefs[i], coef)
        np.testing.assert_array_equal(intercepts[i], intercept)


def test_back_asks_where_shapes_leave_it_open():
    prepared = prepare(federated())
    w = np.arange(36.0).reshape(6, 6)
    with pytest.raises(ValueError, match=r"may be \(p, C\) or a path"):
        prepared.back(w)
    classes, _ = prepared.back(w, is_path=False)
    models, _ = prepared.back(w, is_path=True)
    np.testing.assert_allclose(classes, w / prepared.scale[:, None])
    np.testing.assert_allclose(models, w / prepared.scale)
    with pytest.raises(ValueError, match=r"w has shape \(5,\), but a row has \(6,\)"):
        prepared.back(np.ones(5))


def test_a_model_without_an_intercept_has_one_in_raw_units():
    data = federated()
    prepared = prepare(data)
    w = np.arange(6.0)
    coef, intercept = prepared.back(w)
    np.testing.assert_allclose(data.X @ coef + intercept, prepared.data.X @ w, atol=1e-9)
    assert prepare(data, center=False).back(w)[1] is None


def test_rows_that_are_matrices():
    X, y, clients = rows()
    data = up.FederatedData.from_arrays(X.reshape(-1, 2, 3), y, clients)
    prepared = prepare(data, unpenalised=[4])
    problem = prepared.problem(up.Squared(), up.L1(0.1))
    assert problem.penalty.weights == ((1.0, 1.0, 1.0), (1.0, 0.0, 1.0))
    fit = up.solve(problem, prepared.data)
    coef, intercept = prepared.back(fit.w, fit.intercept)
    expected = np.tensordot(prepared.data.X, fit.w, 2) + fit.intercept
    np.testing.assert_allclose(np.tensordot(data.X, coef, 2) + intercept, expected, atol=1e-9)
    path = up.path(problem, prepared.data, n_lambdas=3)
    np.testing.assert_allclose(prepared.back(path)[0][1], path.coefs[1] / prepared.scale)


def test_sparse_rows_are_scaled_and_not_centred():
    X, y, clients = rows()
    X[np.random.default_rng(0).random(X.shape) < 0.7] = 0.0
    data = up.FederatedData.from_arrays(sparse.csr_array(X), y, clients)
    prepared = prepare(data)
    assert prepared.data.is_sparse
    assert prepared.data.X.nnz == data.X.nnz
    expected = StandardScaler(with_mean=False).fit_transform(data.X)
    np.testing.assert_allclose(prepared.data.X.toarray(), expected.toarray(), rtol=1e-10)
    assert prepared.notes == ("sparse rows were scaled but not centred.",)
    with pytest.raises(ValueError, match="sparse rows are not centred"):
        prepare(data, center=True)
    with pytest.raises(ValueError, match="X is sparse, but the prepared rows are centred"):
        prepare(federated()).apply(sparse.csr_array(X))


def test_the_split_over_clients_does_not_matter():
    X, y, _ = rows()
    fits = []
    for clients in (np.zeros(240, int), np.arange(240) % 5, (np.arange(240) > 200).astype(int)):
        prepared = prepare(up.FederatedData.from_arrays(X, y, clients))
        fit = up.solve(prepared.problem(up.Squared(), up.L1(0.1)), prepared.data, tol=1e-12)
        fits.append(prepared.back(fit.w, fit.intercept))
    for coef, intercept in fits[1:]:
        np.testing.assert_allclose(coef, fits[0][0], rtol=1e-9, atol=1e-12)
        assert intercept == pytest.approx(fits[0][1], rel=1e-9)


def holes(X):
    X = X.copy()
    X[np.random.default_rng(4).random(X.shape) < 0.1] = np.nan
    return X


@pytest.mark.parametrize("center", [True, False])
def test_missing_values_get_the_mean_over_all_sites(center):
    X, y, clients = rows()
    X = holes(X)
    data = up.FederatedData.from_arrays(X, y, clients, allow_missing=True)
    prepared = prepare(data, missing="mean", center=center)
    assert data.has_missing
    assert not prepared.data.has_missing
    filled = SimpleImputer().fit_transform(X)
    observed = StandardScaler().fit(X)  # of the observed values
    expected = (filled - (observed.mean_ if center else 0.0)) / observed.scale_
    np.testing.assert_allclose(prepared.data.X, expected[np.argsort(clients, kind="stable")], atol=1e-10)
    np.testing.assert_allclose(prepared.apply(X), expected, atol=1e-10)
    assert any(f"{np.isnan(X).sum()} missing values" in note for note in prepared.notes)
    assert prepared.ledger.rounds == 1
    up.solve(prepared.problem(up.Squared(), up.L1(0.1)), prepared.data)


def test_missing_values_of_sparse_rows():
    X, y, clients = rows()
    X[np.random.default_rng(0).random(X.shape) < 0.7] = 0.0
    S = sparse.csr_array(X)
    S.data[::7] = np.nan
    data = up.FederatedData.from_arrays(S, y, clients, allow_missing=True)
    prepared = prepare(data, missing="mean")
    filled = SimpleImputer().fit_transform(data.X.toarray())
    np.testing.assert_allclose(prepared.data.X.toarray(), filled / prepared.scale, rtol=1e-10)


def test_missing_values_are_refused_where_they_are_not_dealt_with():
    X, y, clients = rows()
    X[4, 2] = X[0, 2] = X[1, 3] = np.nan  # rows 0 and 4 are of client b, row 1 of client a
    with pytest.raises(ValueError, match="X must be finite: client 'a', row 1, column 3 holds nan"):
        up.FederatedData.from_arrays(X, y, clients)
    data = up.FederatedData.from_arrays(X, y, clients, feature_names=NAMES, allow_missing=True)
    words = r"client 'a', column 'weight': 1 missing value \(3 in all"
    with pytest.raises(ValueError, match=words):
        prepare(data)
    with pytest.raises(ValueError, match="client 'b', column 'dose': 2 missing values;"):
        prepare(data.subset(["b"]))
    for refused in (up.solve, up.path, up.lambda_max, up.cross_validate):
        with pytest.raises(ValueError, match=r"the data has missing values: preprocessing\.prepare"):
            refused(up.Problem(up.Squared(), up.L1(0.1)), data)
    with pytest.raises(ValueError, match="the data has missing values"):
        up.simulate(up.FedDA(), up.Problem(up.Squared(), up.L1(0.1)), data, rounds=1)
    X[5, 0] = np.inf
    with pytest.raises(ValueError, match="row 5, column 0 holds inf"):
        up.FederatedData.from_arrays(X, y, clients, allow_missing=True)
    with pytest.raises(ValueError, match=r"new rows.*holds nan"):
        prepare(federated()).apply(X[:1])


def test_missing_values_come_in_by_every_door():
    X, y, clients = rows()
    X = holes(X)
    frame = pd.DataFrame(X, columns=NAMES).assign(y=y, site=clients)
    by_frame = up.FederatedData.from_frame(frame, "y", "site", allow_missing=True)
    parts = {k: (X[clients == k], y[clients == k]) for k in "abcd"}
    by_client = up.FederatedData.from_clients(parts, allow_missing=True)
    by_array = up.FederatedData.from_arrays(X, y, clients, allow_missing=True)
    for data in (by_frame, by_client, by_array):
        assert data.has_missing
        np.testing.assert_array_equal(data.X, by_array.X)
    assert by_array.astype("float32").has_missing
    whole = up.FederatedData.from_arrays(np.nan_to_num(X), y, clients, allow_missing=True)
    assert not whole.has_missing


def test_new_rows_and_other_data():
    data = federated()
    prepared = prepare(data)
    np.testing.assert_array_equal(prepared.apply(data.X), prepared.data.X)
    frame = pd.DataFrame(data.X[:3], columns=NAMES)
    np.testing.assert_array_equal(prepared.apply(frame), prepared.data.X[:3])
    other = data.subset(["a"])
    np.testing.assert_array_equal(prepared.apply(other).X, prepared.data.client("a").X)
    with pytest.raises(ValueError, match="the columns of X are 'income'"):
        prepared.apply(frame[NAMES[1:] + NAMES[:1]])
    with pytest.raises(ValueError, match=r"a row of X has shape \(5,\)"):
        prepare(up.FederatedData.from_arrays(*rows())).apply(data.X[:, :5])


def test_nothing_to_do_costs_no_round():
    data = federated()
    prepared = prepare(data, center=False, scale=False)
    assert prepared.ledger.rounds == 0
    np.testing.assert_array_equal(prepared.data.X, data.X)


def test_float32_stays_float32():
    prepared = prepare(federated().astype("float32"))
    assert prepared.data.dtype == np.float32
    np.testing.assert_allclose(prepared.data.X, prepare(federated()).data.X, atol=2e-6)


def test_constant_columns_are_said():
    X, y, clients = rows()
    X[:, 1] = 7.0
    prepared = prepare(up.FederatedData.from_arrays(X, y, clients))
    assert prepared.notes == ("column 1 is constant: the scale there is 1.",)
    np.testing.assert_array_equal(prepared.data.X[:, 1], 0.0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"missing": "median"}, "missing must be 'refuse' or 'mean', got 'median'"),
        ({"scale": "yes"}, "scale must be True or False"),
        ({"center": 1}, "center must be True or False"),
        ({"unpenalised": "age"}, "the single string 'age'"),
        ({"unpenalised": ["agee"]}, "no column 'agee'; closest: 'age'"),
        ({"unpenalised": [6]}, "no column 6: columns are 0 to 5"),
        ({"unpenalised": [-1]}, "no column -1"),
    ],
)
def test_bad_options(options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        prepare(federated(), **options)


def test_other_penalties_penalise_everything():
    prepared = prepare(federated(), unpenalised=["age"])
    with pytest.raises(TypeError, match="only L1 and ElasticNet leave columns unpenalised"):
        prepared.problem(up.Squared(), up.GroupL2(0.1, np.arange(6)))
    assert prepared.problem(up.Squared(), up.Zero()).penalty == up.Zero()
    kept = prepared.problem(up.Squared(), up.ElasticNet(0.1, 0.5, [1, 2, 3, 4, 5, 6])).penalty
    assert kept.weights == (0.0, 2.0, 3.0, 4.0, 5.0, 6.0)


def test_memory_mapped_rows_are_not_loaded(tmp_path):
    X, y, _ = rows()
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    data = up.FederatedData.from_arrays(mapped, y, np.arange(240) // 60)
    with pytest.raises(ValueError, match="X is memory-mapped, but preparing writes every row anew"):
        prepare(data)
    np.testing.assert_allclose(up.preprocessing.moments(data).mean, X.mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("scale", [False, True])
def test_new_rows_are_filled_where_those_prepared_missed_nothing(scale, store):
    rng = np.random.default_rng(0)
    X, clients = rng.standard_normal((60, 4)) + 3.0, np.arange(60) % 3
    new = X[:20].copy()
    new[rng.random(new.shape) < 0.3] = np.nan
    data = up.FederatedData.from_arrays(store(X), X[:, 0], clients)
    prepared = prepare(data, missing="mean", center=False, scale=scale)
    found = prepared.apply(store(new))
    filled = SimpleImputer().fit(X).transform(new) / (X.std(axis=0) if scale else 1.0)
    np.testing.assert_allclose(found.toarray() if store is sparse.csr_array else found, filled, rtol=1e-12)
    assert prepared.ledger.rounds == 1
    assert scale or prepared.data.X is data.X  # nothing is written anew
