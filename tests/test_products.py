"""Products with whole data sets, against NumPy in double precision."""

import numpy as np
import pytest
from scipy import sparse

from unpooled import _validation as validation
from unpooled.kernels.products import times, transposed_times


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("outputs", [1, 3])
def test_products(monkeypatch, dtype, kind, outputs):
    monkeypatch.setattr(validation, "BLOCK", 50)
    rng = np.random.default_rng(0)
    dense = (rng.standard_normal((40, 7)) * (rng.random((40, 7)) < 0.5)).astype(dtype)
    W, Z = rng.standard_normal((7, outputs)), rng.standard_normal((40, outputs))
    X = kind(dense)
    np.testing.assert_allclose(times(X, W), dense.astype(float) @ W, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(transposed_times(X, Z), dense.astype(float).T @ Z, rtol=1e-12, atol=1e-14)
    assert times(X, W).dtype == transposed_times(X, Z).dtype == np.float64
