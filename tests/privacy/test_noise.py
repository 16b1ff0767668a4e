"""Noise and cohorts that are random enough, and that nobody can repeat."""

import numpy as np
from scipy import stats

from unpooled.aggregation.privacy.noise import Secret
from unpooled.kernels import draws as sampling


def test_noise_is_standard_normal():
    n = 200_000
    drawn = Secret(7).normal(3, (2, n // 2)).ravel()
    assert abs(drawn.mean()) < 5 / np.sqrt(n)
    assert abs(drawn.var() - 1) < 5 * np.sqrt(2 / n)
    assert stats.kstest(drawn, "norm").pvalue > 1e-3
    halves = drawn.reshape(2, -1)
    assert abs(np.corrcoef(halves)[0, 1]) < 5 / np.sqrt(n / 2)


def test_the_ends_of_the_distribution_are_finite_and_far():
    drawn = Secret(1).normal(0, (10**6,))
    assert np.isfinite(drawn).all()
    assert 4.2 < np.abs(drawn).max() < 8.5
    assert stats.binomtest(int(np.sum(np.abs(drawn) > 3)), 10**6, 2 * stats.norm.sf(3)).pvalue > 1e-3


def test_a_seed_repeats_and_secrets_do_not():
    assert np.array_equal(Secret(5).normal(2, (3, 4)), Secret(5).normal(2, (3, 4)))
    assert not np.array_equal(Secret(5).normal(2, (3, 4)), Secret(5).normal(3, (3, 4)))
    assert not np.array_equal(Secret(5).normal(2, (3, 4)), Secret(6).normal(2, (3, 4)))
    secret = Secret()
    assert not np.array_equal(secret.normal(2, (3, 4)), secret.normal(2, (3, 4)))
    assert not np.array_equal(secret.cohort(2, 10**6, 20), secret.cohort(2, 10**6, 20))


def test_the_seed_of_a_cohort_is_not_kept():
    kept = sampling._remembered.cache_info()
    Secret().cohort(2, 1000, 20)
    assert sampling._remembered.cache_info() == kept
    assert np.array_equal(sampling.forgotten_cohort(3, 70, 100, 9), sampling.cohort(3, 70, 100, 9))
    assert np.array_equal(Secret().cohort(0, 5, None), np.arange(5))


def test_cohorts_are_drawn_evenly():
    rounds, secret = 4000, Secret(0)
    cohorts = np.array([secret.cohort(r, 20, 5) for r in range(rounds)])
    assert all(len(set(cohort)) == 5 for cohort in cohorts)
    counts = np.bincount(cohorts.ravel(), minlength=20)
    spread = np.sum((counts - rounds / 4) ** 2) / (rounds * 0.25 * 0.75) * 19 / 20
    assert stats.chi2.sf(spread, 19) > 1e-3
    assert np.array_equal(secret.cohort(0, 20, 20), np.arange(20))
