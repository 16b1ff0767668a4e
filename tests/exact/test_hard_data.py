"""Data on which a solver could stop too early, go on for too long, or fail: dummies, years, own penalties."""

import math
from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import nnls
from sklearn.linear_model import LogisticRegression

import unpooled as up
from unpooled.penalties.base import Penalty


@dataclass(frozen=True)
class NonNegative(Penalty):
    """The indicator of w ≥ 0, as the documentation writes it."""

    lam: float = 1.0

    def norm(self, w):
        return 0.0 if (w >= 0).all() else math.inf

    def prox(self, v, step):
        return np.maximum(v, 0.0)


@pytest.mark.parametrize("solver", ["fista", "anderson"])
def test_a_gap_that_rests_while_the_objective_falls_is_no_end(solver):
    rng = np.random.default_rng(0)
    school = np.arange(240) % 12
    X = np.hstack([rng.standard_normal((240, 5)), np.eye(12)[school][:, 1:]])
    y = X @ np.r_[1.0, -1.0, 0.5, 0.0, 0.0, rng.normal(0.0, 3.0, 11)] + 20.0 + rng.standard_t(2, 240)
    weights = np.r_[np.ones(5), np.zeros(11)]
    data = up.FederatedData.from_arrays(X, y, school % 4)
    fit = up.solve(up.Problem(up.Huber(0.05), up.L1(0.01, weights), True), data, solver=solver, tol=1e-6)
    w, b = cp.Variable(16), cp.Variable()
    loss = cp.sum(cp.huber(X @ w + b - y, 0.05)) / 480
    best = cp.Problem(cp.Minimize(loss + 0.01 * cp.norm1(w[:5]))).solve(solver=cp.CLARABEL)
    assert fit.converged
    assert fit.certificate.objective == pytest.approx(best, rel=1e-5)


def test_an_own_penalty_and_an_intercept_by_sufficient_statistics():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5)) + 1.0
    y = X @ [1.0, -1.0, 0.5, 0.0, 0.0] + 3.0 + rng.standard_normal(200)
    data = up.FederatedData.from_arrays(X, y, np.arange(200) % 4)
    w, _ = nnls(X - X.mean(axis=0), y - y.mean())
    problem = up.Problem(up.Squared(), NonNegative(), True)
    fit = up.solve(problem, data)
    assert fit.solver == "sufficient statistics"
    assert fit.rounds == 1
    np.testing.assert_allclose(fit.w, w, atol=1e-7)
    assert float(fit.intercept) == pytest.approx(float(np.mean(y - X @ w)), abs=1e-7)
    path = up.path(problem, data, lambdas=[2.0, 1.0])
    np.testing.assert_allclose(path.coefs, [w, w], atol=1e-7)
    chosen = up.cross_validate(problem, data, lambdas=[2.0, 1.0])
    np.testing.assert_allclose(chosen.model[0], w, atol=1e-7)


@pytest.mark.parametrize("C", [1.0, 1e10])
def test_a_calendar_year_costs_no_rounds(C):
    rng = np.random.default_rng(0)
    n, year = 400, 2000 + rng.integers(0, 20, 400)
    X = rng.standard_normal((n, 4))
    z = X[:, 0] - X[:, 1] + 0.05 * (year - 2010.0)
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(-z))).astype(float)
    problem = up.Problem(up.Logistic(), up.L1(1.0 / (C * n)), True)
    rows = [np.column_stack([X, column]) for column in (year - year.mean(), year, 1e3 * year)]
    fits = [up.solve(problem, up.FederatedData.from_arrays(A, y, np.arange(n) % 4)) for A in rows]
    assert all(fit.converged and fit.certificate.kind == "duality gap" for fit in fits)
    assert max(fit.rounds for fit in fits) <= fits[0].rounds + 1
    np.testing.assert_allclose(fits[1].w, fits[0].w, atol=1e-6)
    if C > 1.0:  # the penalty is as good as none: the pooled maximum likelihood
        truth = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(rows[0], y)
        np.testing.assert_allclose(fits[1].w, truth.coef_[0], atol=1e-6)
        np.testing.assert_allclose(1e3 * fits[2].w[-1], truth.coef_[0, -1], atol=1e-6)
