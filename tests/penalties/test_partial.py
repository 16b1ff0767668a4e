"""Large matrices: what the leading singular vectors give is right, or is refused."""

import math

import numpy as np
import pytest

from unpooled.kernels.linalg.singular_values import MODERATE
from unpooled.kernels.linalg.truncated_svd import FIRST_BLOCK, none_missed, shrink_partially, start
from unpooled.penalties import Nuclear
from unpooled.penalties.nuclear import LargeNuclearRecord, NuclearRecord


def low_rank(seed, shape, sigma, noise):
    rng = np.random.default_rng(seed)
    U, V = (np.linalg.qr(rng.normal(size=(n, len(sigma))))[0] for n in shape)
    return (U * sigma) @ V.T + noise * rng.normal(size=shape)


def threshold(A, t):
    U, sigma, Vt = np.linalg.svd(A, full_matrices=False)
    return (U * np.maximum(sigma - t, 0)) @ Vt


def partially(A, t, tolerance=0.0):
    out = np.full(A.size, -1.0)
    bound = shrink_partially(A.ravel(), *A.shape, float(t), tolerance, out)
    return out.reshape(A.shape), bound


@pytest.mark.parametrize("shape", [(300, 260), (260, 270)])
@pytest.mark.parametrize(
    ("sigma", "noise", "t"),
    [
        ([50.0, 30.0, 10.0], 0.0, 1.0),
        ([50.0, 30.0, 10.0], 1e-3, 1.0),  # ‖S₂‖_F says that nothing is missed
        ([50.0, 30.0, 10.0], 0.05, 2.5),  # Cholesky says it
        ([50.0] * 5, 0.05, 3.0),
        (np.linspace(20, 60, 20), 0.02, 5.0),  # more than the first block holds
        ([50.0, 30.0, 10.0], 1e-3, 100.0),  # nothing above
    ],
)
def test_against_lapack(shape, sigma, noise, t):
    A = low_rank(3, shape, sigma, noise)
    truth = threshold(A, t)
    for scale in (1.0, 1e-140, 1e140):
        X, bound = partially(scale * A, scale * t)
        assert bound <= 2e-13 * scale * np.linalg.norm(A)
        assert np.linalg.norm(X / scale - truth) <= bound / scale + 1e-14 * np.linalg.norm(A)


def test_many_are_refused_and_done_by_lapack():
    """Hundreds of singular values above the threshold, and some at its edge."""
    A = low_rank(4, (290, 270), [50.0, 30.0], 0.1)
    for t in (0.5, 2.9):
        X, bound = partially(A, t)
        assert bound == math.inf
        assert (X == -1.0).all()
        np.testing.assert_allclose(Nuclear(t).prox(A, 1.0), threshold(A, t), atol=1e-12)


def test_a_direction_the_start_does_not_have_is_not_missed():
    """A large singular value whose vector is orthogonal to the first block: found later, or refused."""
    n, t = 280, 1.0
    Y = np.linalg.qr(start(np.empty((0, n)), FIRST_BLOCK).T)[0]
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=n)
    hidden -= Y @ (Y.T @ hidden)
    hidden /= np.linalg.norm(hidden)
    seen = Y @ rng.normal(size=FIRST_BLOCK)
    V = np.linalg.qr(rng.normal(size=(n, 2)))[0]
    A = 30.0 * np.outer(seen / np.linalg.norm(seen), V[:, 0]) + 1.5 * np.outer(hidden, V[:, 1])
    X, bound = partially(A, t)
    assert bound == math.inf or np.linalg.norm(X - threshold(A, t)) <= bound
    np.testing.assert_allclose(Nuclear(t).prox(A, 1.0), threshold(A, t), atol=1e-12)


def test_none_missed():
    A = low_rank(5, (40, 60), [3.0, 2.0, 1.0], 0.0)
    assert none_missed(A, 3.0001)
    assert not none_missed(A, 2.9999)
    assert not none_missed.py_func(A, 2.9999)
    assert not none_missed(np.full((3, 3), np.nan), 1.0)


def test_what_is_not_finite_is_seen():
    A = low_rank(6, (260, 300), [3.0], 0.0)
    A[100, 7] = np.nan
    out = np.zeros(A.size, np.float32)
    Nuclear(1.0).record(A.shape).prox(A.ravel(), 1.0, out)
    assert np.isnan(out).all()


def test_large_and_moderate_records_agree():
    shape = (MODERATE + 1, MODERATE + 4)
    A = low_rank(7, shape, [9.0, 4.0], 1e-3)
    record = Nuclear(0.5).record(shape)
    assert isinstance(record, LargeNuclearRecord)
    assert isinstance(Nuclear(0.5).record((MODERATE, 9999)), NuclearRecord)
    one, two = np.empty(A.size), np.empty(A.size)
    moderate = NuclearRecord(*record)
    for name, arguments in [
        ("prox", (1.0,)),
        ("constrained_prox", (1.0, np.zeros(A.size), 3.0, math.inf)),
        ("subgradient", ()),
    ]:
        getattr(record, name)(A.ravel(), *arguments, one)
        getattr(moderate, name)(A.ravel(), *arguments, two)
        np.testing.assert_allclose(one, two, atol=1e-11)
