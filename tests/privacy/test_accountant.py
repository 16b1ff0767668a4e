"""The accountant against closed forms and other bounds."""

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld, rdp
from scipy.special import gammaln

from tests.privacy.closed_forms import gaussian_epsilon
from unpooled.aggregation.privacy.accountant import ORDERS, Accountant


@pytest.mark.parametrize(("z", "rounds"), [(1.0, 1), (4.0, 1), (8.0, 50), (30.0, 400)])
def test_all_clients_are_the_gaussian_mechanism(z, rounds):
    """R releases, each moved by 2 (in units of clip/S) under noise z, are one moved by 2√R."""
    found = Accountant(100, 100, 1e-5).epsilon(z, rounds)
    assert found == pytest.approx(gaussian_epsilon(1e-5, 2 * np.sqrt(rounds), z), rel=1e-6)
    accountant = pld.PLDAccountant()
    accountant.compose(dp_accounting.GaussianDpEvent(z / 2), rounds)
    assert found == pytest.approx(accountant.get_epsilon(1e-5), rel=2e-3)


def log_moment(order, q, sigma):
    """The simple form of the theorem on sampling without replacement, looser than what is used."""
    base = [j / (2 * sigma**2) for j in range(order + 1)]  # Rényi divergence of order j of the Gaussian
    logs = [0.0]
    for j in range(2, order + 1):
        binomial = gammaln(order + 1) - gammaln(j + 1) - gammaln(order - j + 1)
        logs.append(np.log(2) + j * np.log(q) + binomial + (j - 1) * base[j])
    return np.logaddexp.reduce(logs)


def loose(q, sigma, rounds, delta):
    orders = [order for order in ORDERS if order <= 64]
    divergences = [rounds * log_moment(order, q, sigma) / (order - 1) for order in orders]
    return rdp.compute_epsilon(orders, divergences, delta)[0]


@pytest.mark.parametrize(("z", "rounds", "cohort"), [(3.0, 100, 50), (6.0, 1000, 20), (2.0, 10, 10)])
def test_cohorts_lie_between_poisson_sampling_and_the_simple_theorem(z, rounds, cohort):
    found = Accountant(1000, cohort, 1e-5).epsilon(z, rounds)
    poisson = rdp.RdpAccountant(orders=ORDERS)
    event = dp_accounting.PoissonSampledDpEvent(cohort / 1000, dp_accounting.GaussianDpEvent(z / 2))
    poisson.compose(event, rounds)
    assert poisson.get_epsilon(1e-5) < found <= loose(cohort / 1000, z / 2, rounds, 1e-5) * (1 + 1e-9)
    assert found < 0.5 * Accountant(1000, cohort, 1e-5, is_amplified=False).epsilon(z, rounds)


def test_never_worse_than_without_sampling():
    sampled, known = (Accountant(10, 9, 1e-3, is_amplified=amplified) for amplified in (True, False))
    assert sampled.epsilon(5.0, 20) <= known.epsilon(5.0, 20)
    assert known.epsilon(5.0, 20) == Accountant(10, 10, 1e-3).epsilon(5.0, 20)


@pytest.mark.parametrize("cohort", [40, 200])
def test_costs_grow_with_rounds_and_fall_with_noise(cohort):
    accountant = Accountant(200, cohort, 1e-4)
    by_rounds = [accountant.epsilon(4.0, rounds) for rounds in (0, 1, 2, 5, 20)]
    assert by_rounds[0] == 0
    assert np.all(np.diff(by_rounds) > 0)
    assert np.all(np.diff([accountant.epsilon(z, 10) for z in (1.0, 2.0, 4.0, 8.0)]) < 0)


@pytest.mark.parametrize(("epsilon", "cohort"), [(8.0, 200), (0.5, 200), (8.0, 20), (1.0, 20)])
def test_the_chosen_noise_is_enough_and_not_much_more(epsilon, cohort):
    accountant = Accountant(200, cohort, 1e-5)
    z = accountant.noise_multiplier(epsilon, 30)
    assert accountant.epsilon(z, 30) <= epsilon
    assert accountant.epsilon(0.998 * z, 30) > epsilon
    assert accountant.rounds_within(epsilon, z, 30) == 30
    assert 30 <= accountant.rounds_within(epsilon, z, 100) <= 31


def test_rounds_within_a_budget():
    accountant = Accountant(100, 100, 1e-5)
    rounds = accountant.rounds_within(3.0, 10.0, 10**6)
    assert accountant.epsilon(10.0, rounds) <= 3.0 < accountant.epsilon(10.0, rounds + 1)
    assert accountant.rounds_within(1e-9, 1.0, 50) == 0
