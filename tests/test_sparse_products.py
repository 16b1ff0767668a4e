"""The products of sparse rows, in explicit vectors and in plain loops, against NumPy's."""

import numpy as np
import pytest

from unpooled.kernels import plain_products as blocks
from unpooled.kernels import simd, sparse_products
from unpooled.kernels.feature_major_rows import stride_of

needs_vectors = pytest.mark.skipif(simd.width() == 0, reason="plain loops run on this host")
OUTPUTS = [1, 3, 4, 8, 10, 16, 17, 26, 62, 66, 130]  # less than a vector, and around their multiples


def example(n_outputs, dtype):
    rng = np.random.default_rng(n_outputs)
    X = (rng.normal(size=(30, 50)) * (rng.random((30, 50)) < 0.3)).astype(dtype)
    X[4] = 0
    starts = np.concatenate([[0], np.count_nonzero(X, axis=1)]).cumsum()
    narrow = np.uint16 if n_outputs % 2 else np.int32
    csr = X[X != 0], np.nonzero(X)[1].astype(narrow), starts
    batch = np.append(rng.permutation(30)[:10], 4)
    return X[batch], csr, batch, rng.normal(size=(50, n_outputs)).astype(dtype)


def check_sparse_products(kind, n_outputs, dtype):
    X, csr, batch, W = example(n_outputs, dtype)
    module = sparse_products if kind == "vectors" else blocks
    names = ("sparse_margins", "sparse_adjoint")
    margins, adjoint = (getattr(module, name) for name in names)
    if kind == "uncompiled":
        margins, adjoint = margins.py_func, adjoint.py_func
    tolerance = 1e-5 if dtype == np.float32 else 1e-13
    stride = stride_of(n_outputs, W.itemsize) if kind == "vectors" else n_outputs + 3
    Z, before = np.full((len(batch), n_outputs), np.nan, dtype), padded(W, stride)
    margins(*csr, batch, before, stride, Z)
    np.testing.assert_allclose(Z, X @ W, rtol=tolerance, atol=tolerance)
    G = before.copy()
    adjoint(*csr, batch, Z, G, stride)
    wanted = padded(W + X.T @ Z, stride)  # what lies between is still zero
    np.testing.assert_allclose(G, wanted, rtol=10 * tolerance, atol=10 * tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_outputs", OUTPUTS)
@pytest.mark.parametrize("kind", [pytest.param("vectors", marks=needs_vectors), "compiled", "uncompiled"])
def test_products(kind, n_outputs, dtype):
    check_sparse_products(kind, n_outputs, dtype)


def padded(W, stride):
    out = np.zeros((len(W), stride), W.dtype)
    out[:, : W.shape[1]] = W
    return out.ravel()
