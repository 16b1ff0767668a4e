"""The singular-value threshold against one in extended precision, and its certificate."""

import math

import numpy as np
import pytest

import unpooled as up
from unpooled.kernels.linalg.eigenvectors import eigenvectors
from unpooled.kernels.linalg.error_bounds import error_bound
from unpooled.kernels.linalg.jacobi import sweep
from unpooled.kernels.linalg.singular_values import MAX_SWEEPS, nuclear_norm, shrink, shrunk
from unpooled.penalties import Nuclear

from . import extended

EPS = 2.0**-52


def orthogonal(rng, n):
    return np.linalg.qr(rng.normal(size=(n, n)))[0]


def with_singular_values(rng, rows, columns, sigma):
    k = len(sigma)
    return (orthogonal(rng, rows)[:, :k] * sigma) @ orthogonal(rng, columns)[:, :k].T


def matrices():
    rng = np.random.default_rng(5)
    yield "random", rng.normal(size=(12, 12))
    yield "wide", rng.normal(size=(5, 17))
    yield "tall", rng.normal(size=(19, 6))
    yield "one row", rng.normal(size=(1, 7))
    yield "one column", rng.normal(size=(7, 1))
    yield "one entry", rng.normal(size=(1, 1))
    yield "clustered", with_singular_values(rng, 12, 12, 1 + 1e-9 * np.arange(12))
    yield "equal", 3.0 * orthogonal(rng, 10)
    yield "rank-deficient", with_singular_values(rng, 14, 11, [5.0, 2.0, 0.5])
    yield "graded", with_singular_values(rng, 13, 13, np.logspace(0, -12, 13))
    yield "graded columns", rng.normal(size=(12, 12)) * np.logspace(0, -12, 12)
    yield "graded, wide", with_singular_values(rng, 8, 20, np.logspace(0, -14, 8))
    yield "diagonal", np.diag(np.arange(9.0))
    yield "zero", np.zeros((6, 4))
    yield "a zero row and column", np.pad(rng.normal(size=(6, 6)), ((1, 0), (0, 1)))
    yield "tiny", 1e-150 * rng.normal(size=(9, 9))
    yield "huge", 1e150 * rng.normal(size=(9, 9))
    yield "smallest numbers", 5e-320 * np.arange(16.0).reshape(4, 4)
    yield "largest numbers", 1e307 * rng.uniform(-1, 1, size=(4, 5))
    yield "32 by 32", rng.normal(size=(32, 32))


CASES = dict(matrices())
every = pytest.mark.parametrize("A", CASES.values(), ids=CASES.keys())


def shrink_to(A, t, sweeps=MAX_SWEEPS, fallback=True, radius=math.inf, tolerance=0.0):
    out = np.empty(A.size)
    _, _, bound = shrink(A.ravel(), *A.shape, float(t), radius, tolerance, sweeps, fallback, out)
    return out.reshape(A.shape), bound


def thresholds(A):
    """Below all, between two, at one, and above all singular values."""
    sigma = extended.singular_values(A).astype(float)
    return [0.0, 1e-13 * sigma[0], 0.5 * sigma[-1], sigma[len(sigma) // 2], 0.3 * sigma[0], 1.1 * sigma[0]]


@every
def test_against_extended_precision(A):
    """Also after no more than LAPACK, and as good as it or better than a rounding error a row."""
    size = extended.norm(A)
    for t in thresholds(A):
        truth = extended.threshold(A, t)
        for sweeps in (MAX_SWEEPS, -1):
            X, bound = shrink_to(A, t, sweeps)
            error = extended.norm(X - truth)
            assert error <= bound or size < 1e-300  # where numbers have few digits
            assert error <= (4 + 1.5 * min(A.shape)) * EPS * size + 5e-324 * A.size


@every
def test_nuclear_norm(A):
    truth = extended.singular_values(A).sum()
    assert abs(nuclear_norm(A.ravel(), *A.shape) - truth) <= 1e-14 * truth * min(A.shape) + 1e-322


@every
def test_projection_on_the_nuclear_ball(A):
    """κ solves Σ(σ − λ − κ)₊ = radius in extended precision, and X is the threshold at λ + κ."""
    sigma = extended.singular_values(A)
    for lam, share in [(0.0, 0.5), (0.3 * sigma[0], 0.1), (0.0, 0.0), (0.1 * sigma[0], 2.0)]:
        radius = float(share * np.maximum(sigma - lam, 0).sum())
        X = np.empty(A.size)
        kappa = shrunk(A.ravel(), *A.shape, float(lam), radius, X)
        if share >= 1:
            assert kappa == 0.0
            continue
        left = np.maximum(sigma - lam - kappa, 0).sum()
        assert abs(left - radius) <= 1e-14 * len(sigma) * sigma.sum() + 1e-320
        error = extended.norm(X.reshape(A.shape) - extended.threshold(A, lam + np.longdouble(kappa)))
        assert error <= (8 + 2 * len(sigma)) * EPS * extended.norm(A) + 1e-320


@pytest.mark.parametrize("seed", range(200))
def test_the_bound_holds_for_vectors_that_are_off(seed):
    """Q off by anything from rounding to a tenth: where the bound is finite, the error is below it."""
    rng = np.random.default_rng(seed)
    k, m = rng.integers(2, 9), rng.integers(8, 12)
    A = rng.normal(size=(k, m)) * (np.logspace(0, -6, k)[:, None] if seed % 3 == 0 else 1.0)
    B, Q, _ = extended.svd(A)
    sigma = np.sort(np.sqrt((B * B).sum(axis=1)))[::-1]
    skew = rng.normal(size=(k, k)) * 10.0 ** -rng.uniform(1, 15)
    skew = (skew - skew.T).astype(np.longdouble)
    inverse = np.linalg.inv((np.eye(k) + skew).astype(float)).astype(np.longdouble)
    for _ in range(3):  # Newton's steps to extended precision
        inverse = inverse @ (2 * np.eye(k) - (np.eye(k) + skew) @ inverse)
    Q = (np.eye(k) - skew) @ inverse @ Q  # Cayley's transform keeps it orthogonal
    B = Q @ A.astype(np.longdouble)
    norms = np.sqrt((B * B).sum(axis=1))
    t = float(sigma[rng.integers(k)] * rng.uniform(0.3, 1.1))
    X = Q.T @ (np.maximum(1 - t / norms, 0)[:, None] * B)
    bound, _ = error_bound((B @ B.T).astype(float), norms.astype(float), t, 0.0, False)
    error = extended.norm(X - extended.threshold(A, t))
    assert error <= bound * (1 + 1e-12) + 1e-17
    assert bound < 1e-9 or abs(skew).max() > 1e-14  # it is not infinite for nothing


@pytest.mark.parametrize("seed", range(40))
def test_the_bound_holds_when_stopped_early(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(10, 10)) * np.logspace(0, -rng.uniform(2, 14), 10)
    t = float(extended.singular_values(A)[rng.integers(10)]) * 0.9
    for sweeps in (0, 1):
        X, bound = shrink_to(A, t, sweeps, fallback=False)
        assert extended.norm(X - extended.threshold(A, t)) <= bound


def test_what_eigenvectors_cannot_do():
    """Small singular values far below the first: the Gram matrix loses them, Jacobi or LAPACK do not."""
    A, t = CASES["graded columns"], 1e-11
    truth, size = extended.threshold(A, t), extended.norm(A)
    X, bound = shrink_to(A, t, sweeps=0, fallback=False)
    assert bound > 1e-12 * size
    for sweeps in (0, 1, MAX_SWEEPS):
        X, bound = shrink_to(A, t, sweeps)
        assert bound <= 1e-13 * size
        assert extended.norm(X - truth) <= 1e-14 * size
    _, certified = shrink_to(A, t, MAX_SWEEPS, fallback=False)
    assert certified <= 1e-13 * size


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", [0, 7, 19])
def test_what_is_not_finite_is_seen(wrong, where):
    v = np.arange(20.0)
    v[where] = wrong
    for dtype in (np.float64, np.float32):
        out = np.zeros(20, dtype)
        Nuclear(0.5).record((4, 5)).prox(v.copy(), 1.0, out)
        assert np.isnan(out).all()
    out = np.zeros(20)
    assert math.isnan(shrunk(np.arange(20.0), 4, 5, math.nan, math.inf, out))
    assert np.isnan(out).all()


@every
def test_float32(A):
    """Rounded once, from a result that is good enough for it."""
    if not 1e-30 < np.abs(A).max() < 1e30:
        return
    t = 0.2 * np.linalg.norm(A, 2)
    X = Nuclear(1.0).prox(A.astype(np.float32), t)
    assert X.dtype == np.float32
    truth = extended.threshold(A.astype(np.float32), t)
    assert extended.norm(X - truth) <= 1e-7 * extended.norm(A)


@every
def test_compiled_and_not(A):
    for t in thresholds(A)[1:4]:
        one, two = np.empty(A.size), np.empty(A.size)
        arguments = (A.ravel(), *A.shape, float(t), math.inf, 0.0, MAX_SWEEPS, True)
        _, _, bound = shrink(*arguments, one)
        shrink.py_func(*arguments, two)
        assert np.abs(one - two).max() <= 2 * bound + 1e-320


def test_eigenvectors_and_sweep_uncompiled():
    rng = np.random.default_rng(1)
    A = rng.normal(size=(7, 9))
    for solve in (eigenvectors, eigenvectors.py_func):
        Q = np.empty((7, 7))
        assert solve(A @ A.T, Q)
        np.testing.assert_allclose(Q @ Q.T, np.eye(7), atol=1e-14)
        D = Q @ A @ A.T @ Q.T
        np.testing.assert_allclose(D, np.diag(np.diag(D)), atol=1e-13)
    for rotate in (sweep, sweep.py_func):
        B, Q = A.copy(), np.eye(7)
        while rotate(B, Q, np.empty(7), 0.0, 1e-16, True):
            pass
        np.testing.assert_allclose(Q @ A, B, atol=1e-14)
        np.testing.assert_allclose(np.sort(np.linalg.norm(B, axis=1)), np.linalg.svd(A)[1][::-1], rtol=1e-14)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_same_bits_on_one_and_two_threads(dtype):
    data = up.datasets.low_rank_regression(seed=1, n_clients=6, n_rows=20, shape=(9, 7), rank=2)
    algorithm = up.FastFedDA(mu=0.1, gamma=60.0, local_steps=4, schedule="uniform")
    problem = up.Problem(up.Squared(), Nuclear(0.1))
    one, two = (
        up.simulate(
            algorithm, problem, data, rounds=8, batch_size=5, dtype=dtype, engine=up.engines.Local(threads=n)
        )
        for n in (1, 2)
    )
    assert np.array_equal(one.w, two.w)
    assert np.linalg.matrix_rank(one.w) >= 1


def test_divergence_is_seen():
    data = up.datasets.low_rank_regression(seed=1, n_clients=6, n_rows=20, shape=(9, 7), rank=2)
    run = up.simulate(
        up.FedMiD(step=1e6, local_steps=5), up.Problem(up.Squared(), Nuclear(0.1)), data, rounds=99
    )
    assert run.status == "diverged"
