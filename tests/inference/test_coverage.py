"""Coverage of 95 % intervals, in few replications; ``make check-statistics`` takes 500."""

import numpy as np
import pytest

from tests.inference.replications import binomial_bounds, replications


@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_coverage(kind):
    """40 data sets, six columns of each; what is counted differs from 95 % by chance only.

    The bounds are those of independent trials at 93 % and 97 %, widened by one in a thousand at either end.
    """
    runs = replications(kind, 40, columns=[0, 3, 4, 20, 100, 199])
    covered = np.array([run.covered for run in runs])
    for part in (covered[:, :3], covered[:, 3:]):
        low, high = binomial_bounds(0.93, part.size)[0], binomial_bounds(0.97, part.size)[1]
        assert low <= part.sum() <= high, (part.sum(), part.size)
    z = np.array([run.z for run in runs])
    assert 0.85 < z[:, 3:].std() < 1.15
    rejected = np.sum(np.concatenate([run.p_sites for run in runs]) < 0.05)
    assert rejected <= binomial_bounds(0.05, 400)[1]
    assert rejected >= binomial_bounds(0.05, 400)[0]
