"""One suite for every loss: a new one is tested by being listed here."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
import scipy.special

import unpooled as up
from unpooled.kernels.rows import DenseRows, SparseRows
from unpooled.losses.base import linear_gradient

N, P, C = 23, 7, 4


def rowwise(loss, z, y):
    """Σ-free formulas from textbooks and SciPy, one value a row."""
    if isinstance(loss, up.Squared):
        return 0.5 * (z[:, 0] - y) ** 2
    if isinstance(loss, up.Huber):
        return scipy.special.huber(loss.delta, z[:, 0] - y)
    if isinstance(loss, up.Poisson):
        return np.exp(z[:, 0]) - y * z[:, 0]
    if isinstance(loss, up.Logistic):
        return -np.log(scipy.special.expit(np.where(y > 0, 1, -1) * z[:, 0]))
    return -scipy.special.log_softmax(z, axis=1)[np.arange(len(y)), y.astype(int)]


def targets(loss, rng):
    if isinstance(loss, up.Poisson):
        return rng.poisson(1.5, N).astype(float)
    if isinstance(loss, up.Logistic):
        return rng.integers(0, 2, N).astype(float)
    if isinstance(loss, up.Softmax):
        return rng.integers(0, C, N).astype(float)
    return rng.standard_normal(N) * 2


LOSSES = [up.Squared(), up.Huber(0.8), up.Poisson(), up.Logistic(), up.Softmax(n_classes=C)]


@pytest.fixture(params=LOSSES, ids=lambda loss: type(loss).__name__)
def case(request):
    loss, rng = request.param, np.random.default_rng(8)
    X, y = rng.standard_normal((N, P)), targets(loss, rng)
    w = 0.5 * rng.standard_normal((P, C) if isinstance(loss, up.Softmax) else P)
    b = 0.3 * rng.standard_normal(C) if isinstance(loss, up.Softmax) else 0.3
    s = rng.uniform(0.1, 3.0, N)
    return loss, X, y, w, b, s


def test_value(case):
    loss, X, y, w, b, s = case
    z = (X @ w).reshape(N, -1)
    assert loss.value(w, X, y) == pytest.approx(rowwise(loss, z, y).mean(), rel=1e-13)
    weighted = np.average(rowwise(loss, z + b, y), weights=s)
    assert loss.value(w, X, y, sample_weight=s, intercept=b) == pytest.approx(weighted, rel=1e-13)


def test_gradient_is_the_derivative(case):
    loss, X, y, w, b, s = case
    in_w, in_b = loss.gradient(w, X, y, sample_weight=s, intercept=b)
    assert np.shape(in_w) == w.shape
    flat = np.append(w.ravel(), b)

    def value(v):
        coefficients = v[: w.size].reshape(w.shape)
        intercept = v[w.size :] if np.ndim(b) else v[w.size]
        return loss.value(coefficients, X, y, sample_weight=s, intercept=intercept)

    numeric = scipy.optimize.approx_fprime(flat, value, 1e-7)
    np.testing.assert_allclose(np.append(np.ravel(in_w), in_b), numeric, rtol=0, atol=2e-6)
    np.testing.assert_allclose(loss.gradient(w, X, y, sample_weight=s), loss.gradient(w, X, y, s, None))


def test_sparse_rows_equal_dense_rows(case):
    loss, X, y, w, b, s = case
    X = X * (np.abs(X) > 0.7)
    csr = scipy.sparse.csr_array(X)
    assert loss.value(w, csr, y, s, b) == pytest.approx(loss.value(w, X, y, s, b), rel=1e-14)
    for sparse, dense in zip(loss.gradient(w, csr, y, s, b), loss.gradient(w, X, y, s, b), strict=True):
        np.testing.assert_allclose(sparse, dense, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_minibatch_kernel(case, dtype, intercept, sparse):
    """The compiled minibatch gradient against the NumPy one on the same rows, for 1 to 11 rows."""
    loss, X, y, w, b, s = case
    X = (X * (np.abs(X) > 0.5)).astype(dtype)
    y, s = y.astype(dtype), (s / s.mean()).astype(dtype)
    if sparse:
        csr = scipy.sparse.csr_array(X)
        rows = SparseRows(csr.data, csr.indices, csr.indptr, P, y, s)
    else:
        rows = DenseRows(X, y, s)
    outputs = C if isinstance(loss, up.Softmax) else 1
    flat = w.ravel(order="F").astype(dtype)
    if intercept:
        flat = np.append(flat, b).astype(dtype)
    for batch in (np.array([5]), np.array([3, 0, 9, 1]), np.arange(4, 9), np.arange(20, 9, -1)):
        G, Z = np.full_like(flat, np.nan), np.empty((len(batch), outputs), dtype)
        linear_gradient(loss.record(), rows, batch, flat, Z, G)
        # the kernel divides by the batch's size, not by its weights' sum
        scale = s[batch].sum() / len(batch)
        expected = loss.gradient(w, X[batch], y[batch], s[batch], b if intercept else None)
        in_w, in_b = expected if intercept else (expected, ())
        expected = scale * np.append(np.ravel(in_w, order="F"), in_b)
        tolerance = 1e-12 if dtype == np.float64 else 2e-5
        np.testing.assert_allclose(G, expected, rtol=tolerance, atol=tolerance)


def _csr_parts(X):
    csr = scipy.sparse.csr_array(X)
    return csr.data, csr.indices, csr.indptr


def test_smoothness_bounds_the_hessian(case):
    """L bounds the largest eigenvalue of a numeric Hessian near w (where Poisson's means are small)."""
    loss, X, y, w, _, s = case
    w = 0.1 * w
    L = loss.smoothness(X, y, s)
    hessian = np.empty((w.size, w.size))
    for j in range(w.size):
        e = np.zeros(w.size)
        e[j] = 1e-5
        up_, down = (loss.gradient(w + sign * e.reshape(w.shape), X, y, s) for sign in (1, -1))
        hessian[j] = (up_ - down).ravel() / 2e-5
    top = np.linalg.eigvalsh((hessian + hessian.T) / 2)[-1]
    assert top <= L * (1 + 1e-6)
    if isinstance(loss, up.Squared):
        np.testing.assert_allclose(L, top, rtol=1e-6)


def test_extreme_margins_are_finite(case):
    loss, X, y, w, _, _ = case
    if isinstance(loss, up.Poisson):
        pytest.skip("the mean of a Poisson count does overflow")
    big = w * 1e4
    assert np.isfinite(loss.value(big, X, y))
    assert np.isfinite(loss.gradient(big, X, y)).all()


def test_wrong_shapes_are_refused(case):
    loss, X, y, w, _, _ = case
    with pytest.raises(ValueError, match=r"w has shape .* but a row has 7 features"):
        loss.value(np.zeros(P + 1), X, y)
    with pytest.raises(ValueError, match=r"sample_weight has shape"):
        loss.value(w, X, y, sample_weight=np.ones(3))
