"""The pooled answer, by scikit-learn and cvxpy on pooled rows."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, PoissonRegressor

import unpooled as up
from tests.exact.federations import LOSSES, federated

TIGHT = {"tol": 1e-11}


def objective(fit, data):
    return fit.problem.objective(fit.w, data, fit.intercept)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("solver", ["sufficient_statistics", "prox_newton", "anderson", "fista"])
def test_lasso(solver, intercept):
    data = federated("squared")
    fit = up.solve(up.Problem(up.Squared(), up.L1(0.1), intercept), data, solver=solver, **TIGHT)
    peer = Lasso(0.1, fit_intercept=intercept, tol=1e-14, max_iter=100_000).fit(data.X, data.y)
    theirs = fit.problem.objective(peer.coef_, data, peer.intercept_ if intercept else None)
    assert abs(objective(fit, data) - theirs) <= 1e-8 * theirs
    np.testing.assert_array_equal(fit.w != 0, peer.coef_ != 0)
    np.testing.assert_allclose(fit.w, peer.coef_, atol=1e-5)
    assert fit.certificate.objective == pytest.approx(objective(fit, data), rel=1e-12)


@pytest.mark.parametrize("solver", ["sufficient_statistics", "prox_newton", "anderson"])
@pytest.mark.parametrize("ratio", [0.3, 0.9])
def test_elastic_net(solver, ratio):
    data = federated("squared")
    fit = up.solve(up.Problem(up.Squared(), up.ElasticNet(0.2, ratio), True), data, solver=solver, **TIGHT)
    peer = ElasticNet(alpha=0.2, l1_ratio=ratio, tol=1e-14, max_iter=100_000).fit(data.X, data.y)
    theirs = fit.problem.objective(peer.coef_, data, peer.intercept_)
    assert abs(objective(fit, data) - theirs) <= 1e-8 * theirs
    np.testing.assert_array_equal(fit.w != 0, peer.coef_ != 0)


@pytest.mark.parametrize("solver", ["prox_newton", "anderson", "fista"])
def test_sparse_logistic(solver):
    data, lam = federated("logistic"), 0.02
    fit = up.solve(up.Problem(up.Logistic(), up.L1(lam), True), data, solver=solver, **TIGHT)
    peer = LogisticRegression(C=1 / (lam * 300), l1_ratio=1.0, solver="saga", tol=1e-12, max_iter=100_000)
    peer.fit(data.X, data.y)
    theirs = fit.problem.objective(peer.coef_[0], data, float(peer.intercept_[0]))
    assert abs(objective(fit, data) - theirs) <= 1e-8 * theirs
    np.testing.assert_array_equal(fit.w != 0, peer.coef_[0] != 0)


def test_ridge_softmax():
    data, lam = federated("softmax"), 0.05
    fit = up.solve(up.Problem(up.Softmax(), up.ElasticNet(lam, 0.0), True), data, **TIGHT)
    peer = LogisticRegression(C=1 / (lam * 300), tol=1e-12, max_iter=10_000).fit(data.X, data.y)
    theirs = fit.problem.objective(peer.coef_.T, data, peer.intercept_)
    assert abs(objective(fit, data) - theirs) <= 1e-8 * theirs
    np.testing.assert_allclose(fit.w, peer.coef_.T, atol=1e-5)


def test_ridge_poisson():
    data, lam = federated("poisson"), 0.1
    fit = up.solve(up.Problem(up.Poisson(), up.ElasticNet(lam, 0.0), True), data, **TIGHT)
    peer = PoissonRegressor(alpha=lam, tol=1e-10, solver="newton-cholesky").fit(data.X, data.y)
    np.testing.assert_allclose(fit.w, peer.coef_, atol=1e-6)
    assert fit.intercept == pytest.approx(peer.intercept_, abs=1e-6)


def smooth_part(kind, Z, y):
    """The mean loss as a convex expression of the margins."""
    if kind == "squared":
        return cp.sum_squares(Z - y) / (2 * len(y))
    if kind == "huber":
        return cp.sum(cp.huber(Z - y, 1.35)) / (2 * len(y))
    if kind == "poisson":
        return (cp.sum(cp.exp(Z)) - y @ Z) / len(y)
    if kind == "logistic":
        return (cp.sum(cp.logistic(Z)) - y @ Z) / len(y)
    own = cp.sum(cp.multiply(Z, np.eye(3)[y.astype(int)]))
    return (cp.sum(cp.log_sum_exp(Z, axis=1)) - own) / len(y)


GROUPS = np.arange(8) // 2
PENALTIES = {
    "l1": (up.L1(0.05), lambda W: 0.05 * cp.sum(cp.abs(W))),
    "group": (
        up.GroupL2(0.05, GROUPS, "sqrt"),
        lambda W: (
            0.05
            * sum(
                np.sqrt(2 * (W.shape[1] if W.ndim == 2 else 1)) * cp.norm(cp.vec(W[2 * g : 2 * g + 2], "F"))
                for g in range(4)
            )
        ),
    ),
    "net": (
        up.ElasticNet(0.05, 0.5),
        lambda W: 0.05 * (0.5 * cp.sum(cp.abs(W)) + 0.25 * cp.sum_squares(W)),
    ),
}


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("kind", LOSSES)
def test_every_loss_and_penalty(kind, penalty):
    data = federated(kind, n=120, p=8, sites=3)
    ours, theirs = PENALTIES[penalty]
    W = cp.Variable((8, 3) if kind == "softmax" else 8)
    b = cp.Variable(3) if kind == "softmax" else cp.Variable()
    Z = data.X @ W + (np.ones((120, 1)) @ cp.reshape(b, (1, 3), "F") if kind == "softmax" else b)
    pooled = cp.Problem(cp.Minimize(smooth_part(kind, Z, data.y) + theirs(W)))
    best = pooled.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    for solver in ("auto", "anderson"):
        fit = up.solve(up.Problem(LOSSES[kind], ours, True), data, solver=solver, tol=1e-10)
        assert objective(fit, data) == pytest.approx(best, rel=1e-8)
        assert fit.converged
        assert fit.certificate.kind == "duality gap"


@pytest.mark.parametrize("intercept", [False, True])
def test_nuclear_norm(intercept):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((150, 6, 5))
    y = np.einsum("nij,i,j->n", X, np.ones(6), np.arange(5.0)) + rng.standard_normal(150) + 1.0
    data = up.FederatedData.from_arrays(X, y, np.arange(150) % 4)
    W, b = cp.Variable((6, 5)), cp.Variable() if intercept else 0.0
    Z = X.reshape(150, 30) @ cp.vec(W, "C") + b
    pooled = cp.Problem(cp.Minimize(smooth_part("squared", Z, y) + 0.5 * cp.normNuc(W)))
    best = pooled.solve(solver=cp.CLARABEL)
    for solver in ("auto", "anderson"):
        fit = up.solve(up.Problem(up.Squared(), up.Nuclear(0.5), intercept), data, solver=solver, tol=1e-10)
        assert objective(fit, data) == pytest.approx(best, rel=1e-7)
        assert fit.certificate.gap <= 1e-9 * fit.certificate.scale
        assert np.linalg.matrix_rank(fit.w, 1e-6) == np.linalg.matrix_rank(W.value, 1e-4)


def test_no_penalty_is_least_squares():
    data = federated("squared")
    fit = up.solve(up.Problem(up.Squared(), up.Zero(), True), data)
    A = np.column_stack([data.X, np.ones(300)])
    exact = np.linalg.lstsq(A, data.y, rcond=None)[0]
    np.testing.assert_allclose(np.append(fit.w, fit.intercept), exact, atol=1e-10)
    assert fit.certificate.kind == "duality gap"
