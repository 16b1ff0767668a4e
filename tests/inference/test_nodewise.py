"""The nodewise lasso on a Gram matrix against scikit-learn on rows, and its optimality condition."""

import numpy as np
import pytest
from scipy import stats

from tests.inference import pooled
from unpooled.inference import benjamini_hochberg
from unpooled.inference.coordinate_descent import PASSES, descend
from unpooled.inference.nodewise import default_lam, nodewise


def rows(n, p, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * rng.uniform(0.1, 10, p)
    X[:, 1] += X[:, 0]
    return X - X.mean(axis=0)


def test_against_scikit_learn():
    X = rows(80, 12)
    theta, failed = nodewise(X.T @ X / 80, np.arange(12), 0.08)
    assert failed == 0
    np.testing.assert_allclose(theta, pooled.nodewise(X, 0.08), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("n", "p"), [(200, 60), (50, 120)])
def test_optimality_condition(n, p):
    X = rows(n, p)
    G, lam = X.T @ X / n, default_lam(p, n)
    columns = np.array([3, p - 1, 0])
    theta, failed = nodewise(G, columns, lam)
    assert failed == 0
    scale = np.sqrt(np.diag(G))
    unit = theta * np.multiply.outer(scale[columns], scale)
    error = unit @ (G / np.multiply.outer(scale, scale)) - np.eye(p)[columns]
    limit = lam * unit[np.arange(3), columns]
    assert (np.abs(error).max(axis=1) <= limit * (1 + 1e-9)).all()
    off = np.ones((3, p), dtype=bool)
    off[np.arange(3), columns] = False
    active = (unit != 0) & off
    np.testing.assert_allclose(
        np.abs(error)[active], np.broadcast_to(limit[:, None], (3, p))[active], rtol=1e-8
    )


def test_no_penalty_is_the_inverse_and_a_singular_matrix_is_refused():
    X = rows(100, 7)
    G = X.T @ X / 100
    np.testing.assert_allclose(nodewise(G, np.arange(7), 0.0)[0], np.linalg.inv(G), rtol=1e-8)
    X = rows(5, 7)
    with pytest.raises(ValueError, match="singular: give lam_node > 0"):
        nodewise(X.T @ X / 5, np.arange(7), 0.0)


def test_descent_stops_and_says_so():
    X = rows(60, 10)
    G = np.ascontiguousarray(X.T @ X / 60)
    for passes, ends in ((1, False), (PASSES, True)):
        v, q = np.zeros(10), -G[0].copy()
        assert descend(G, q, v, np.full(10, 0.01), np.zeros(10), -1, 1e-12, passes) == ends
        np.testing.assert_allclose(q, G @ v - G[0], atol=1e-10)


def test_benjamini_hochberg():
    p = np.random.default_rng(0).random(40) ** 3
    np.testing.assert_allclose(benjamini_hochberg(p), stats.false_discovery_control(p))
    with_gaps = np.insert(p, [0, 17], np.nan)
    own = benjamini_hochberg(with_gaps)
    np.testing.assert_array_equal(np.isnan(own), np.isnan(with_gaps))
    np.testing.assert_allclose(own[~np.isnan(own)], stats.false_discovery_control(p))
