"""All ways to threshold singular values compute the same."""

import numpy as np
import pytest

from benchmarks.agreement import check
from benchmarks.singular import TOLERANCE, eigh, gesdd, gesvd, ours


@pytest.mark.parametrize("threshold", [ours, gesdd, gesvd, eigh])
def test_thresholds_agree(threshold):
    rng, values = np.random.default_rng(0), np.array([9.0, 4.0, 2.5, 1.0, 0.3])
    U, V = (np.linalg.qr(rng.standard_normal((3, 7, 5)))[0] for _ in range(2))
    V = np.swapaxes(V, 1, 2)
    truth = (U * np.maximum(values - 2.0, 0.0)) @ V
    check(threshold.__name__, threshold((U * values) @ V, 2.0), truth, TOLERANCE)
