"""Coverage of 95 % intervals, in few replications; ``make check-statistics`` takes 500."""

import numpy as np
import pytest

from tests.inference.replications import binomial_bounds, replications


@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_coverage(kind):
    """40 data sets; the ten coefficients that are not zero and twenty that are.

    The bounds are those of independent trials at 93 % and 97 %, widened by one in a thousand at either end.
    """
    runs = replications(kind, 40, columns=range(30))
    covered, z = np.array([run.covered for run in runs]), np.array([run.z for run in runs])
    for part in (covered[:, :10], covered[:, 10:]):
        low, high = binomial_bounds(0.93, part.size)[0], binomial_bounds(0.97, part.size)[1]
        assert low <= part.sum() <= high, (part.sum(), part.size)
    assert 0.9 < z.std() < 1.1
    assert np.abs(z.mean(axis=0)).max() < 4 / np.sqrt(40)
    low, high = binomial_bounds(0.05, 400)
    assert low <= np.sum(np.concatenate([run.p_sites for run in runs]) < 0.05) <= high
