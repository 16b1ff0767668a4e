"""Coefficients without a penalty in the exact solvers, against cvxpy and scikit-learn on the pooled rows."""

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Lasso

import unpooled as up
from tests.exact.federations import LOSSES, federated, rows
from unpooled.exact.certificate import quadratic_bound
from unpooled.exact.shrinkage import shrinkage
from unpooled.preprocessing import prepare

WEIGHTS = np.array([0.0, 1.0, 2.0, 1.0, 0.5, 1.0, 0.0, 1.0])
FREE = WEIGHTS == 0


def problem(kind, lam=0.05, intercept=True):
    return up.Problem(LOSSES[kind], up.L1(lam, WEIGHTS), intercept)


def pooled_optimum(kind, X, y, penalty):
    """The optimal objective of cvxpy, with an intercept."""
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    z = X @ w + b
    if kind == "squared":
        loss = 0.5 * cp.sum_squares(z - y)
    elif kind == "logistic":
        loss = cp.sum(cp.logistic(z)) - y @ z
    elif kind == "poisson":
        loss = cp.sum(cp.exp(z)) - y @ z
    else:
        loss = 0.5 * cp.sum(cp.huber(z - y, LOSSES["huber"].delta))
    h = penalty.lam * cp.sum(cp.multiply(penalty.weights, cp.abs(w)))
    if isinstance(penalty, up.ElasticNet):
        squares = cp.sum(cp.multiply(penalty.weights, cp.square(w)))
        h = penalty.l1_ratio * h + 0.5 * (1 - penalty.l1_ratio) * penalty.lam * squares
    task = cp.Problem(cp.Minimize(loss / len(y) + h))
    task.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return task.value, w.value


@pytest.mark.parametrize(
    "penalty", [up.L1(0.05, WEIGHTS), up.ElasticNet(0.05, 0.5, WEIGHTS)], ids=["l1", "en"]
)
@pytest.mark.parametrize("kind", ["squared", "logistic", "poisson", "huber"])
def test_the_optimum_is_cvxpys(kind, penalty):
    X, y, clients = rows(kind, n=200, p=8)
    data = up.FederatedData.from_arrays(X, y, clients)
    best, w = pooled_optimum(kind, X, y, penalty)
    for solver in ("auto", "anderson", "fista"):
        fit = up.solve(up.Problem(LOSSES[kind], penalty, True), data, solver=solver, tol=1e-9)
        assert fit.certificate.objective == pytest.approx(best, abs=1e-8)
        np.testing.assert_allclose(fit.w, w, atol=2e-4)
        bounded = kind != "huber" and solver == "auto"
        assert fit.certificate.kind == ("duality gap" if bounded else "KKT residual")
        if bounded:
            assert best - 2e-9 <= fit.certificate.dual <= best + 1e-9


@pytest.mark.parametrize("kind", LOSSES)
def test_solvers_agree_to_rounding_and_gradients_vanish(kind):
    data = federated(kind, p=8)
    fits = [up.solve(problem(kind), data, solver=s, tol=1e-10) for s in ("auto", "prox_newton", "anderson")]
    for fit in fits[1:]:
        np.testing.assert_allclose(fit.w, fits[0].w, atol=1e-7)
    in_w, in_b = problem(kind).gradient(fits[0].w, data, fits[0].intercept)
    assert np.abs(in_w[FREE]).max() < 1e-9
    assert np.abs(in_b).max() < 1e-9
    assert (np.abs(in_w[~FREE]).reshape(6, -1).max(axis=1) <= 0.05 * WEIGHTS[~FREE] + 1e-9).all()


def test_the_gap_of_least_squares_is_never_too_small():
    checked = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        data = federated("squared", n=60, p=8, sites=3, seed=seed)
        X, y = data.X - data.X.mean(axis=0), data.y - data.y.mean()
        H, c, yy = X.T @ X / 60, X.T @ y / 60, float(y @ y) / 60
        penalty = [up.L1(0.05, WEIGHTS), up.ElasticNet(0.1, 0.5, WEIGHTS)][seed % 2]
        bound = up.Problem(up.Squared(), penalty).bind(data)
        fit = up.solve(up.Problem(up.Squared(), penalty, True), data, tol=1e-12)
        h, best = shrinkage(bound), fit.certificate.objective
        for size in (0.0, 1e-5, 1e-2, 1.0):
            v = fit.w + size * rng.normal(size=8)
            value = 0.5 * yy - c @ v + 0.5 * v @ H @ v + h.value(v)
            lower = quadratic_bound(H, c, yy, h, v)
            assert lower <= best + 1e-13
            assert value - lower >= value - best - 1e-13
            if size <= 1e-5:
                assert value - lower < 1e-3
            checked += 1
        assert quadratic_bound(H, c, yy, h, fit.w) == pytest.approx(best, abs=1e-12)
    assert checked == 80


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("intercept", [True, False])
def test_lambda_max_has_the_covariates_fitted(kind, intercept):
    data = federated(kind, n=200, p=8)
    task = problem(kind, intercept=intercept)
    largest = up.lambda_max(task, data)
    above = up.solve(task.with_lam(1.0001 * largest), data, tol=1e-11)
    below = up.solve(task.with_lam(0.99 * largest), data, tol=1e-11)
    assert not above.w[~FREE].any()
    assert above.w[FREE].all()
    assert below.w[~FREE].any()


def test_lambda_max_of_least_squares_in_closed_form():
    X, y, clients = rows("squared", n=200, p=8)
    A = np.column_stack([X[:, FREE], np.ones(200)])
    r = y - A @ np.linalg.lstsq(A, y, rcond=None)[0]
    expected = np.max(np.abs(X[:, ~FREE].T @ r) / 200 / WEIGHTS[~FREE])
    data = up.FederatedData.from_arrays(X, y, clients)
    assert up.lambda_max(problem("squared"), data) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_paths_and_cross_validation(kind):
    data = federated(kind, n=200, p=8)
    path = up.path(problem(kind), data, n_lambdas=5, ratio=0.05, tol=1e-9)
    assert np.abs(path.coefs[0][~FREE]).max() < 1e-8
    assert path.coefs[0][FREE].all()
    for i in (1, 4):
        fit = up.solve(problem(kind, path.lambdas[i]), data, tol=1e-10)
        np.testing.assert_allclose(path.coefs[i], fit.w, atol=1e-6)
    of = np.arange(200) % 4
    found = up.cross_validate(problem(kind), data, folds=of, lambdas=path.lambdas, tol=1e-9)
    kept = up.FederatedData.from_arrays(data.X[of != 1], data.y[of != 1], np.zeros(150, int))
    left = up.FederatedData.from_arrays(data.X[of == 1], data.y[of == 1], np.zeros(50, int))
    fit = up.solve(problem(kind, path.lambdas[2]), kept, tol=1e-10)
    assert found.losses[2, 1] == pytest.approx(problem(kind).smooth(fit.w, left, fit.intercept), rel=1e-6)
    if kind == "squared":
        assert found.rounds == path.rounds == 1
        assert path.certificates[2].kind == "duality gap"


def test_ebic_counts_the_choices_among_the_penalised():
    from math import comb, log

    data = federated("squared", n=200, p=8)
    path = up.path(problem("squared"), data, n_lambdas=5, ratio=0.05)
    bic, ebic = up.information(path, "bic"), up.information(path, "ebic", gamma=1.0)
    chosen = [np.count_nonzero(np.abs(w[~FREE])) for w in path.coefs]
    np.testing.assert_allclose(ebic - bic, [2 * log(comb(6, k)) for k in chosen], atol=1e-9)


def test_columns_without_a_penalty_by_name():
    """Frisch and Waugh: the lasso on what the free columns do not explain, by scikit-learn."""
    X, y, clients = rows("squared", n=200, p=6)
    names = ["age", "sex", "a", "b", "c", "d"]
    data = up.FederatedData.from_arrays(X, y, clients, feature_names=names)
    prepared = prepare(data, unpenalised=["sex", "age"])
    assert prepared.unpenalised == (0, 1)
    fit = up.solve(prepared.problem(up.Squared(), up.L1(0.1)), prepared.data, tol=1e-12)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    A = np.column_stack([Z[:, :2], np.ones(200)])
    left = np.column_stack([Z[:, 2:], y])
    left -= A @ np.linalg.lstsq(A, left, rcond=None)[0]
    lasso = Lasso(0.1, fit_intercept=False, tol=1e-13, max_iter=100_000).fit(left[:, :4], left[:, 4])
    np.testing.assert_allclose(fit.w[2:], lasso.coef_, atol=1e-8)
    assert fit.certificate.kind == "duality gap"


def test_softmax_and_sparse_rows():
    X, y, clients = rows("softmax", n=200, p=8)
    fits = [
        up.solve(problem("softmax", 0.02), up.FederatedData.from_arrays(store(X), y, clients), tol=1e-10)
        for store in (np.asarray, sparse.csr_array)
    ]
    np.testing.assert_allclose(fits[0].w, fits[1].w, atol=1e-8)
    assert fits[0].w[FREE].all()


def test_free_columns_that_say_the_same():
    X, y, clients = rows("squared", n=200, p=8)
    X[:, 6] = X[:, 0]  # both are free
    fit = up.solve(problem("squared"), up.FederatedData.from_arrays(X, y, clients), tol=1e-10)
    assert fit.certificate.kind == "duality gap"
    best, _ = pooled_optimum("squared", X, y, up.L1(0.05, WEIGHTS))
    assert fit.certificate.objective == pytest.approx(best, abs=1e-8)


def test_a_ridge_alone_has_no_lambda_max():
    data = federated("squared", p=8)
    with pytest.raises(ValueError, match="no λ of ElasticNet"):
        up.lambda_max(up.Problem(up.Squared(), up.ElasticNet(0.1, 0.0, WEIGHTS), True), data)


def test_weights_that_do_not_fit_the_data():
    data = federated("squared", p=5)
    with pytest.raises(ValueError, match=r"weights have shape \(8,\), but the coefficients have \(5,\)"):
        up.solve(problem("squared"), data)


@pytest.mark.parametrize("value", [1.0, 0.1, 1e3 * np.pi])
def test_a_free_column_that_is_constant(value):
    X, y, clients = rows("squared", n=200, p=8)
    data = up.FederatedData.from_arrays(np.delete(X, 6, axis=1), y, clients)
    truth = up.solve(up.Problem(up.Squared(), up.L1(0.05, np.delete(WEIGHTS, 6)), True), data)
    X[:, 6] = value
    with pytest.warns(UserWarning, match="column 6, left unpenalised, is constant: the intercept takes up"):
        fit = up.solve(problem("squared"), up.FederatedData.from_arrays(X, y, clients))
    assert fit.converged
    np.testing.assert_allclose(fit.w, np.insert(truth.w, 6, 0.0), atol=1e-9)
    assert fit.intercept == pytest.approx(truth.intercept)
