"""Measured smoothness, against the eigenvalues themselves; the same on sparse rows."""

import numpy as np
import pytest
from scipy import sparse

import unpooled as up
from unpooled.algorithms.curvature import Curvature
from unpooled.data import row_curvature


def federations(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((70, 9)) * (rng.random((70, 9)) < 0.4)
    y, s = rng.integers(0, 2, 70).astype(float), rng.random(70) + 0.1
    clients = np.sort(rng.integers(0, 6, 70))
    clients[-1] = 9  # a client of one row
    return [up.FederatedData.from_arrays(M, y, clients, s) for M in (X, sparse.csr_array(X))]


def expected(problem, data, b):
    """The formula of the docstring with exact eigenvalues."""
    found = []
    for client in data:
        X = np.asarray(client.X)
        X = np.column_stack([X, np.ones(len(X))]) if problem.intercept else X
        c = problem.loss.curvature(client.y) * client.sample_weight
        n, longest = len(X), np.max(c * np.square(X).sum(axis=1))
        L = np.linalg.eigvalsh(X.T @ (c[:, None] * X) / n)[-1]
        m = n if b is None else min(b, n)
        found.append(
            longest if n == 1 else (n - m) / (m * (n - 1)) * longest + n * (m - 1) / (m * (n - 1)) * L
        )
    return max(found)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("b", [1, 4, None])
@pytest.mark.parametrize("loss", [up.Squared(), up.Logistic()], ids=["Squared", "Logistic"])
def test_expected_smoothness(monkeypatch, intercept, b, loss):
    monkeypatch.setattr(row_curvature, "POWER_ITERATIONS", 3000)
    problem = up.Problem(loss, up.L1(0.1), intercept=intercept)
    dense, csr = federations()
    truth = expected(problem, dense, b)
    assert Curvature(problem, dense, b).smoothness == pytest.approx(truth, rel=1e-6)
    assert Curvature(problem, csr, b).smoothness == pytest.approx(truth, rel=1e-6)


@pytest.mark.parametrize("intercept", [False, True])
def test_strong_convexity_is_the_smallest_eigenvalue(intercept):
    problem = up.Problem(up.Squared(), up.L1(0.1), intercept=intercept)
    dense, csr = federations()
    X = np.column_stack([dense.X, np.ones(70)]) if intercept else dense.X
    truth = np.linalg.eigvalsh(X.T @ (dense.row_weights[:, None] * X))[0]
    for data in (dense, csr):
        assert Curvature(problem, data, None).strong_convexity == pytest.approx(truth, rel=1e-8)


def test_few_power_iterations_are_the_same_on_sparse_rows():
    problem = up.Problem(up.Squared(), up.L1(0.1), intercept=True)
    dense, csr = (Curvature(problem, data, 3).smoothness for data in federations())
    assert csr == pytest.approx(dense, rel=1e-12)
