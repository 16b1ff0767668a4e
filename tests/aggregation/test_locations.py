"""Medians and trimmed means against their closed forms."""

import numpy as np
import pytest
from scipy import stats

import unpooled as up


def combined(aggregate, uploads, weights=None):
    uploads = np.array(uploads, dtype=np.result_type(uploads, np.float32))
    weights = np.full(len(uploads), 1 / len(uploads)) if weights is None else np.asarray(weights, float)
    mean = np.zeros(uploads.shape[1:])
    aggregate.combine(mean, weights, uploads)
    return mean


@pytest.fixture(scope="module")
def uploads():
    return np.random.default_rng(0).standard_cauchy((20, 2, 33))


def test_equal_weights_are_the_textbooks(uploads):
    for n in (1, 2, 7, 19, 20):
        np.testing.assert_allclose(
            combined(up.CoordinateMedian(), uploads[:n]), np.median(uploads[:n], axis=0)
        )
    for fraction in (0.0, 0.05, 0.1, 0.25, 0.45):
        wanted = stats.trim_mean(uploads, fraction + 1e-12, axis=0)
        np.testing.assert_allclose(
            combined(up.TrimmedMean(fraction), uploads), wanted, rtol=1e-12, atol=1e-13
        )
    np.testing.assert_allclose(combined(up.Mean(), uploads), uploads.mean(axis=0), rtol=1e-12)


def test_a_whole_weight_is_so_many_clients(uploads):
    """A client of weight 3 is three clients of weight 1."""
    counts = np.random.default_rng(1).integers(1, 5, len(uploads))
    repeated = np.repeat(uploads, counts, axis=0)
    for aggregate in (up.CoordinateMedian(), up.TrimmedMean(0.2), up.TrimmedMean(0.37), up.Mean()):
        found = combined(aggregate, uploads, counts / counts.sum())
        np.testing.assert_allclose(found, combined(aggregate, repeated), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        combined(up.CoordinateMedian(), uploads, counts / counts.sum()), np.median(repeated, axis=0)
    )


def test_a_client_on_the_edge_counts_in_part():
    found = combined(up.TrimmedMean(0.25), np.array([[[0.0]], [[1.0]], [[5.0]]]))
    np.testing.assert_allclose(found, (0.0 / 12 + 1.0 / 3 + 5.0 / 12) / 0.5)


def test_weights_that_do_not_sum_to_one_scale_the_result(uploads):
    weights = np.random.default_rng(2).random(20)
    for aggregate in (up.CoordinateMedian(), up.TrimmedMean(0.1), up.Mean()):
        scaled = combined(aggregate, uploads, 3 * weights / weights.sum())
        np.testing.assert_allclose(scaled, 3 * combined(aggregate, uploads, weights / weights.sum()))


@pytest.mark.parametrize("n", [5, 10, 15, 50, 100, 1000])
def test_what_is_cut_leaves_no_trace(n):
    """Rounding leaves a little of a weight that is just cut; times 1e90 that would be everything."""
    rng = np.random.default_rng(n)
    honest = rng.standard_normal((n, 1, 200))
    wrong = n // 5
    honest[:wrong] = np.where(rng.random((wrong, 1, 200)) < 0.5, 1e90, -1e90)
    for aggregate in (up.TrimmedMean(0.2), up.CoordinateMedian()):
        assert np.all(np.abs(combined(aggregate, honest)) <= np.abs(honest[wrong:]).max())


def test_single_precision_is_summed_in_double(uploads):
    single = uploads.astype(np.float32)
    for aggregate in (up.CoordinateMedian(), up.TrimmedMean(0.1)):
        found = combined(aggregate, single)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, combined(aggregate, single.astype(float)), rtol=1e-12)


@pytest.mark.parametrize("fraction", [-0.1, 0.5, float("nan"), True, "0.1", None])
def test_a_fraction_is_below_one_half(fraction):
    with pytest.raises(ValueError, match=r"fraction must be a number in \[0, 0.5\)"):
        up.TrimmedMean(fraction)
