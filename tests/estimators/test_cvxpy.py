"""The estimators that scikit-learn has no peer of, against cvxpy on the pooled rows."""

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

import unpooled as up
from tests.exact.federations import rows
from unpooled.estimators.matrix_problem import MatrixProblem

N = 100
SOLVER = {"solver": cp.CLARABEL, "tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
S = np.random.default_rng(3).uniform(0.5, 2.0, N)
GROUPS = ["a", "b", "a", "c", "b", "c", "d", "d"]
MEMBERS = [[j for j, g in enumerate(GROUPS) if g == name] for name in "abcd"]


def mean(losses):
    return cp.sum(cp.multiply(S / S.sum(), losses))


def net(w, alpha, ratio):
    return alpha * (ratio * cp.norm1(w) + 0.5 * (1 - ratio) * cp.sum_squares(w))


CASES = {
    "group lasso": (
        "squared",
        up.FederatedGroupLasso(0.3, groups=GROUPS),
        lambda z, y: mean(cp.square(z - y)) / 2,
        lambda w: 0.3 * sum(np.sqrt(2) * cp.norm(w[m]) for m in MEMBERS),
    ),
    "poisson": (
        "poisson",
        up.FederatedPoissonRegressor(0.05),
        lambda z, y: mean(cp.exp(z) - cp.multiply(y, z)),
        lambda w: net(w, 0.05, 1.0),
    ),
    "huber": (
        "huber",
        up.FederatedHuberRegressor(0.1, delta=0.8, l1_ratio=0.9),
        lambda z, y: mean(cp.huber(z - y, 0.8)) / 2,
        lambda w: net(w, 0.1, 0.9),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_vectors(case):
    kind, model, loss, penalty = CASES[case]
    X, y, clients = rows(kind, n=N, p=8, sites=4)
    w, b = cp.Variable(8), cp.Variable()
    best = cp.Problem(cp.Minimize(loss(X @ w + b, y) + penalty(w))).solve(**SOLVER)
    model.fit(X, y, clients=clients, sample_weight=S)
    assert model.certificate_.objective == pytest.approx(best, rel=1e-8)
    assert loss(X @ model.coef_ + model.intercept_, y).value + penalty(model.coef_).value == pytest.approx(
        best, rel=1e-8
    )
    np.testing.assert_array_equal(model.coef_ != 0, np.abs(w.value) > 1e-5)
    assert 0 < np.count_nonzero(model.coef_) < 8


@pytest.mark.parametrize("form", ["matrices", "flat", "sparse"])
def test_trace_regression(form):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((N, 5, 4))
    y = np.einsum("nij,i,j->n", X, np.ones(5), np.arange(4.0)) + rng.standard_normal(N) + 1.0
    flat = X.reshape(N, 20)
    W, b = cp.Variable((5, 4)), cp.Variable()
    loss = mean(cp.square(flat @ cp.vec(W, "C") + b - y)) / 2
    best = cp.Problem(cp.Minimize(loss + 0.8 * cp.normNuc(W))).solve(**SOLVER)
    model = up.FederatedTraceRegressor(0.8, shape=None if form == "matrices" else (5, 4), tol=1e-10)
    given = {"matrices": X, "flat": flat, "sparse": sparse.csr_array(flat)}[form]
    model.fit(given, y, clients=np.arange(N) % 3, sample_weight=S)
    assert model.certificate_.objective == pytest.approx(best, rel=1e-8)
    assert model.coef_.shape == (5, 4)
    assert np.linalg.matrix_rank(model.coef_, 1e-6) == np.linalg.matrix_rank(W.value, 1e-4) < 4
    np.testing.assert_allclose(model.predict(given), model.predict(flat), atol=1e-12)
    assert model.problem_.objective(model.coef_, model._data, model.intercept_) == pytest.approx(
        best, rel=1e-8
    )
    assert model.n_features_in_ == 20
    data = up.FederatedData.from_arrays(X, y, np.arange(N) % 3, S)
    again = up.FederatedTraceRegressor(0.8, tol=1e-10).fit(data)
    np.testing.assert_allclose(again.coef_, model.coef_, atol=1e-8)
    np.testing.assert_allclose(np.sort(again.predict(data)), np.sort(again.predict(X)), atol=1e-10)


def test_trace_regression_without_a_shape_has_the_euclidean_norm():
    X, y, clients = rows("squared", n=N, p=6, sites=3)
    w, b = cp.Variable(6), cp.Variable()
    loss = cp.sum_squares(X @ w + b - y) / (2 * N)
    best = cp.Problem(cp.Minimize(loss + 0.3 * cp.norm(w))).solve(solver=cp.CLARABEL)
    model = up.FederatedTraceRegressor(0.3).fit(X, y, clients=clients)
    assert model.certificate_.objective == pytest.approx(best, rel=1e-8)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_matrix_completion(fit_intercept):
    rng = np.random.default_rng(2)
    M = rng.standard_normal((9, 2)) @ rng.standard_normal((2, 7))
    pairs = np.argwhere(rng.random((9, 7)) < 0.7)
    pairs = np.vstack([pairs, pairs[:5]])  # some entries are seen twice
    y = M[pairs[:, 0], pairs[:, 1]] + 0.1 * rng.standard_normal(len(pairs)) + 0.5
    s = rng.uniform(0.5, 2.0, len(pairs))
    L, b = cp.Variable((9, 7)), cp.Variable() if fit_intercept else 0.0
    seen = cp.vec(L, "C")[pairs[:, 0] * 7 + pairs[:, 1]]
    loss = cp.sum(cp.multiply(s / s.sum(), cp.square(seen + b - y))) / 2
    best = cp.Problem(cp.Minimize(loss + 0.04 * cp.normNuc(L))).solve(**SOLVER)
    model = up.FederatedMatrixCompletion(0.04, fit_intercept=fit_intercept, tol=1e-9)
    model.fit(pairs, y, clients=pairs[:, 0] % 3, sample_weight=s)
    assert model.certificate_.objective == pytest.approx(best, rel=1e-8)
    assert model.certificate_.kind == "duality gap"
    assert model.coef_.shape == (9, 7)
    assert np.linalg.matrix_rank(model.coef_, 1e-5) == np.linalg.matrix_rank(L.value, 1e-4) < 7
    expected = model.coef_[pairs[:, 0], pairs[:, 1]] + model.intercept_
    np.testing.assert_array_equal(model.predict(pairs), expected)
    assert model.solver_ == "Anderson prox-gradient"
    assert "largest pair" in model.ledger_.kinds
    known = up.FederatedMatrixCompletion(0.04, shape=(9, 7), fit_intercept=fit_intercept, tol=1e-9)
    known.fit(pairs, y, clients=pairs[:, 0] % 3, sample_weight=s)
    np.testing.assert_array_equal(known.coef_, model.coef_)
    assert known.rounds_ == model.rounds_ - 1
    data = up.FederatedData.from_arrays(pairs.astype(float), y, pairs[:, 0] % 3, s)
    np.testing.assert_allclose(known.fit(data).predict(pairs), model.predict(pairs), atol=1e-6)


def test_the_gradient_of_flat_rows_is_that_of_matrices():
    rng = np.random.default_rng(1)
    X, y, W = rng.standard_normal((30, 3, 2)), rng.standard_normal(30), rng.standard_normal((3, 2))
    flat = up.FederatedData.from_arrays(X.reshape(30, 6), y, np.arange(30) % 4)
    whole = up.FederatedData.from_arrays(X, y, np.arange(30) % 4)
    ours = MatrixProblem(up.Squared(), up.Nuclear(0.1), True, shape=(3, 2))
    theirs = up.Problem(up.Squared(), up.Nuclear(0.1), True)
    np.testing.assert_allclose(ours.gradient(W, flat), theirs.gradient(W, whole))
    for a, b in zip(ours.gradient(W, flat, 0.5), theirs.gradient(W, whole, 0.5), strict=True):
        np.testing.assert_allclose(a, b)
    assert ours.with_lam(0.2).objective(W, flat, 0.5) == pytest.approx(
        theirs.with_lam(0.2).objective(W, whole, 0.5)
    )
