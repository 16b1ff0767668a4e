"""ℓ1 and elastic net with weights, some of them zero: unpenalised coefficients."""

import math

import numpy as np
import pytest

import unpooled as up
from unpooled.penalties import L1, ElasticNet

from .truth import cvxpy_prox, objective

FREE = (1.0, 0.0, 2.0, 0.5, 0.0, 1.0, 0.1)
PENALTIES = [L1(0.7, FREE), ElasticNet(0.7, 0.4, FREE), ElasticNet(0.7, 0.0, FREE)]
every = pytest.mark.parametrize("penalty", PENALTIES, ids=["l1", "elastic net", "ridge"])


def drawn(seed):
    return 2.0 * np.random.default_rng(seed).normal(size=(2, 7))


@every
@pytest.mark.parametrize("seed", range(3))
def test_the_prox_is_cvxpys(penalty, seed):
    v, center = drawn(seed)
    w = penalty.prox(v, 0.8)
    np.testing.assert_allclose(w, cvxpy_prox(penalty, v, 0.8), atol=2e-5)
    np.testing.assert_array_equal(w[[1, 4]], v[[1, 4]])
    radius = [0.05, 0.4, 0.9][seed] * penalty.norm(w - center)
    ball = 0.8 * np.linalg.norm(penalty.constrained_prox(v, 0.8, center, radius))
    for limit in (math.inf, max(ball, 1.1 * least_norm(penalty, center, radius))):
        w = penalty.constrained_prox(v, 0.8, center, radius, limit)
        truth = cvxpy_prox(penalty, v, 0.8, center, radius, limit)
        assert penalty.norm(w - center) <= radius * (1 + 1e-9)
        assert np.linalg.norm(w) <= limit * (1 + 1e-9)
        assert objective(penalty, w, v, 0.8) <= objective(penalty, truth, v, 0.8) + 1e-5
        np.testing.assert_allclose(w, truth, atol=2e-3)


def least_norm(penalty, center, radius):
    return np.linalg.norm(penalty.constrained_prox(0 * center, 0.0, center, radius))


@every
def test_radius_zero_holds_only_what_is_penalised(penalty):
    v, center = drawn(5)
    w = penalty.constrained_prox(v, 0.5, center, 0.0)
    expected = np.where(np.array(FREE) > 0, center, v)
    np.testing.assert_array_equal(w, expected)
    ball = np.linalg.norm(center[np.array(FREE) > 0]) + 0.1
    assert ball < np.linalg.norm(expected)
    w = penalty.constrained_prox(v, 0.5, center, 0.0, ball)
    np.testing.assert_allclose(w, cvxpy_prox(penalty, v, 0.5, center, 1e-12, ball), atol=1e-3)


@every
def test_the_dual_norm_and_lambda_max(penalty):
    u = np.ones(7)
    assert math.isinf(penalty.dual_norm(u))
    u[[1, 4]] = 0.0
    if penalty.l1_ratio if isinstance(penalty, ElasticNet) else 1.0:
        assert penalty.dual_norm(u) == penalty.lambda_max(np.ones(7)) == pytest.approx(10.0 / _ratio(penalty))


def _ratio(penalty):
    return getattr(penalty, "l1_ratio", 1.0)


def test_unit_weights_change_nothing():
    v = drawn(6)[0]
    for plain, weighted in [
        (L1(0.3), L1(0.3, np.ones(7))),
        (ElasticNet(0.3, 0.6), ElasticNet(0.3, 0.6, [1] * 7)),
    ]:
        np.testing.assert_allclose(plain.prox(v, 0.9), weighted.prox(v, 0.9), rtol=1e-14)
        assert plain.value(v) == pytest.approx(weighted.value(v))
        assert plain.dual_norm(v) == weighted.dual_norm(v)


def test_without_weights_the_record_is_the_one_without():
    assert type(L1(0.3).record((3,))).__name__ == "L1Record"
    assert type(ElasticNet(0.3, 0.5).record((3,))).__name__ == "ElasticNetRecord"
    assert repr(L1(0.3)) == "L1(lam=0.3)"
    assert repr(ElasticNet(0.3, 0.5)) == "ElasticNet(lam=0.3, l1_ratio=0.5)"
    assert repr(L1(0.3, [0, 1])) == "L1(lam=0.3, weights=[0.0, 1.0])"
    assert "40 weights, 39 of them 0" in repr(L1(0.3, [1] + [0] * 39))
    assert hash(L1(0.3, [0, 1])) == hash(L1(0.3, np.array([0.0, 1.0])))
    assert L1(0.3, [0, 1]) == L1(0.3, np.array([0.0, 1.0])) != L1(0.3)


def test_weights_per_feature_serve_every_class():
    v = np.random.default_rng(0).normal(size=(5, 4))
    u = np.array([0.0, 1.0, 2.0, 0.5, 1.0])
    by_feature, full = L1(0.4, u), L1(0.4, np.repeat(u[:, None], 4, axis=1))
    np.testing.assert_array_equal(by_feature.prox(v, 1.0), full.prox(v, 1.0))
    flat = np.empty(20)
    by_feature.record((5, 4), "F").prox(v.ravel(order="F"), 1.0, flat)
    np.testing.assert_array_equal(flat.reshape(5, 4, order="F"), full.prox(v, 1.0))


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1.0, -0.5], "at least 0"),
        ([1.0, np.nan], "finite"),
        ([0.0, 0.0], r"use Zero\(\)"),
        (np.ones((2, 2, 2)), r"shape \(2, 2, 2\)"),
        (1.0, "single number"),
    ],
)
def test_bad_weights(weights, words):
    with pytest.raises(ValueError, match=words):
        L1(0.1, weights)
    with pytest.raises(ValueError, match=words):
        ElasticNet(0.1, 0.5, weights)


def test_weights_of_the_wrong_length():
    with pytest.raises(ValueError, match=r"weights have shape \(3,\), but the coefficients have \(7,\)"):
        L1(0.1, [1, 2, 3]).prox(np.ones(7), 1.0)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_simulation_takes_weights(sparse):
    """FedDA on one client with full gradients is dual averaging: it reaches the weighted lasso."""
    from scipy.sparse import csr_array

    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 6))
    y = X @ [1.0, -1.0, 0.5, 0.0, 0.0, 0.0] + 0.1 * rng.normal(size=80)
    data = up.FederatedData.from_arrays(csr_array(X) if sparse else X, y, np.zeros(80, int))
    problem = up.Problem(up.Squared(), up.L1(0.3, [0.0, 1.0, 1.0, 0.2, 1.0, 0.0]), True)
    best = up.solve(problem, data, tol=1e-12)
    run = up.simulate(up.FedDA(), problem, data, rounds=300, progress=False)
    np.testing.assert_allclose(run.w, best.w, atol=1e-7)
