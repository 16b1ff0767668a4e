"""The nuclear norm in its ball: exact where matrices share singular vectors, certified everywhere."""

import math

import numpy as np
import pytest

from unpooled.penalties import L1, Nuclear
from unpooled.penalties.nuclear_solve import solve_nuclear


def orthogonal(rng, n):
    return np.linalg.qr(rng.normal(size=(n, n)))[0]


@pytest.mark.parametrize("seed", range(12))
def test_shared_singular_vectors(seed):
    """V = U diag(a) Qᵀ and W₀ = U diag(b) Qᵀ: the solution is U diag(x) Qᵀ, x the constrained ℓ1 prox."""
    rng = np.random.default_rng(seed)
    rows, columns = [(6, 6), (8, 5), (4, 7)][seed % 3]
    k = min(rows, columns)
    U, Q = orthogonal(rng, rows)[:, :k], orthogonal(rng, columns)[:, :k]
    a, b = 3 * rng.normal(size=k), 2 * rng.normal(size=k)
    b[:2] = 0.0  # rank-deficient
    lam = [0.0, 0.3, 2.0][seed % 3]
    radius = [0.2, 0.5, 0.9][seed // 4] * np.abs(L1(lam).prox(a, 1.0) - b).sum()
    x = L1(lam).constrained_prox(a, 1.0, b, radius)
    V, W0 = (U * a) @ Q.T, (U * b) @ Q.T
    W = Nuclear(lam).constrained_prox(V, 1.0, W0, radius)
    np.testing.assert_allclose(W, (U * x) @ Q.T, atol=1e-8)
    least = np.linalg.norm(L1(0.0).constrained_prox(0 * a, 1.0, b, radius))
    ball = 0.5 * (np.linalg.norm(x) + least)
    if np.linalg.norm(x) - least > 1e-3:
        x = L1(lam).constrained_prox(a, 1.0, b, radius, ball)
        W = Nuclear(lam).constrained_prox(V, 1.0, W0, radius, ball)
        np.testing.assert_allclose(W, (U * x) @ Q.T, atol=1e-8)


@pytest.mark.parametrize("seed", range(12))
def test_certificate(seed):
    """The gap is tiny, and ½‖W − W*‖² ≤ gap against a point of another solver: plain, unaccelerated steps."""
    rng = np.random.default_rng(seed)
    V, W0 = 2 * rng.normal(size=(2, 5, 4))
    if seed % 2:
        W0 = np.outer(W0[:, 0], W0[0])
    penalty = Nuclear([0.1, 0.5, 2.0][seed % 3])
    radius = [0.3, 0.6, 0.9][seed // 4] * penalty.norm(penalty.prox(V, 1.0) - W0)
    size = np.linalg.norm(V) + np.linalg.norm(W0)
    gap = penalty.constrained_prox_gap(V, 1.0, W0, radius)
    assert 0.0 <= gap <= 1e-12 * size**2
    W = penalty.constrained_prox(V, 1.0, W0, radius)
    assert penalty.norm(W - W0) <= radius * (1 + 1e-12)
    Y = np.zeros_like(V)
    for _ in range(1500):
        X = penalty.prox(V - Y, 1.0)
        Z = W0 + Nuclear(0.0).constrained_prox(Y + X - W0, 1.0, 0 * V, radius)
        Y = Y + X - Z
        if np.linalg.norm(X - Z) <= 1e-13 * size:
            break
    assert np.linalg.norm(W - Z) <= 1e-8 * size + 10 * np.linalg.norm(X - Z)


def test_certificate_with_the_ball():
    rng = np.random.default_rng(1)
    V, W0 = 2 * rng.normal(size=(2, 6, 5))
    penalty = Nuclear(0.5)
    radius = 0.6 * penalty.norm(penalty.prox(V, 1.0) - W0)
    free = np.linalg.norm(penalty.constrained_prox(V, 1.0, W0, radius))
    least = np.linalg.norm(Nuclear(0.0).constrained_prox(0 * V, 1.0, W0, radius))
    for fraction in (0.01, 0.5, 0.99):
        ball = least + fraction * (free - least)
        W = penalty.constrained_prox(V, 1.0, W0, radius, ball)
        assert np.linalg.norm(W) <= ball * (1 + 1e-13)
        assert penalty.norm(W - W0) <= radius * (1 + 1e-12)
        assert (
            0.0 <= penalty.constrained_prox_gap(V, 1.0, W0, radius, ball) <= 1e-11 * np.sum(V**2) / fraction
        )


def test_most_calls_take_few_svds():
    rng = np.random.default_rng(2)
    V, W0 = rng.normal(size=(2, 8, 8))
    out = np.empty(64)
    for center, radius, most in [(0 * W0, 1.0, 4), (W0, 1e3, 2), (W0, math.inf, 2)]:
        _, svds = solve_nuclear(V.ravel().copy(), 0.1, center.ravel().copy(), radius, math.inf, 8, 8, out)
        assert svds <= most


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1), (7, 3), (3, 7)])
def test_degenerate_matrices(shape):
    zero, one = np.zeros(shape), np.ones(shape)
    penalty = Nuclear(0.5)
    np.testing.assert_array_equal(penalty.prox(zero, 1.0), zero)
    np.testing.assert_allclose(penalty.prox(one, 1.0), one * (1 - 0.5 / np.linalg.norm(one)), atol=1e-14)
    np.testing.assert_allclose(penalty.constrained_prox(zero, 1.0, zero, 1.0), zero)
    # v and center on one line: the scalar problem
    for a, b, radius in [(4.0, 1.0, 0.5), (-4.0, 1.0, 2.0), (0.0, 3.0, 1.0)]:
        n = np.linalg.norm(one)
        x = L1(0.5).constrained_prox(np.array([a * n]), 1.0, np.array([b * n]), radius)
        np.testing.assert_allclose(
            penalty.constrained_prox(a * one, 1.0, b * one, radius), one * x / n, atol=1e-8
        )


def test_prox_accuracy():
    """Against the same formula in extended accuracy: singular values set by hand."""
    rng = np.random.default_rng(4)
    U, Q = orthogonal(rng, 32), orthogonal(rng, 32)
    sigma = np.logspace(0, -10, 32)
    W = Nuclear(1.0).prox((U * sigma) @ Q.T, 1e-4)
    np.testing.assert_allclose(W, (U * np.maximum(sigma - 1e-4, 0)) @ Q.T, atol=1e-14)
