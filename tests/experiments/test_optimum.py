"""The exact optimum of the pooled problem, against scikit-learn and the optimality conditions."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso

import unpooled as up
from unpooled.experiments.experiment import exact_optimum, has_exact_optimum
from unpooled.experiments.noisy_quadratic import CURVATURES, NoisyQuadratic, noisy_quadratic


def test_lasso_is_scikit_learns():
    data = up.datasets.sparse_regression(seed=0, n_clients=5, n_rows=30, n_features=40, sparsity=6)
    problem = up.Problem(up.Squared(), up.L1(0.2))
    w = exact_optimum(problem, data)
    truth = Lasso(alpha=0.2, fit_intercept=False, tol=1e-12, max_iter=10**6).fit(data.X, data.y).coef_
    assert np.allclose(w, truth, atol=1e-8)
    weighted = data.with_weights([1, 2, 3, 4, 5])
    weight = weighted.row_weights * weighted.n_rows
    truth = Lasso(alpha=0.2, fit_intercept=False, tol=1e-12, max_iter=10**6)
    assert np.allclose(exact_optimum(problem, weighted), truth.fit(data.X, data.y, weight).coef_, atol=1e-8)


def test_nuclear_meets_its_optimality_conditions():
    """−∇L(Ŵ) = λ(UVᵀ + N) with N orthogonal to Ŵ's singular vectors and of norm at most one."""
    data = up.datasets.low_rank_regression(seed=0, n_clients=4, n_rows=60, shape=(6, 5), rank=2)
    problem = up.Problem(up.Squared(), up.Nuclear(0.5))
    W = exact_optimum(problem, data)
    assert W.shape == (6, 5)
    U, s, Vt = np.linalg.svd(W)
    r = int((s > 1e-8).sum())
    dual = -problem.gradient(W, data) / 0.5
    rotated = U.T @ dual @ Vt.T
    assert 0 < r < 5
    assert np.allclose(rotated[:r, :r], np.eye(r), atol=1e-7)
    assert np.allclose(rotated[r:, :r], 0, atol=1e-7)
    assert np.linalg.norm(rotated[r:, r:], 2) <= 1 + 1e-7


def test_noisy_quadratic_in_closed_form():
    data, problem = noisy_quadratic(seed=1, n_clients=3), up.Problem(NoisyQuadratic(), up.L1(0.5))
    w = exact_optimum(problem, data)
    gradient = problem.gradient(w, data)
    assert np.allclose(gradient[w != 0], -0.5 * np.sign(w[w != 0]), atol=1e-10)
    assert np.abs(gradient[w == 0]).max() <= 0.5 + 1e-10
    assert (w == 0).any()
    assert len(w) == len(CURVATURES)


@pytest.mark.parametrize("loss", [up.Logistic(), up.Softmax()])
def test_other_losses_have_none_here(loss):
    assert not has_exact_optimum(up.Problem(loss, up.L1(0.1)))
    assert not has_exact_optimum(up.Problem(up.Squared(), up.L1(0.1), intercept=True))
