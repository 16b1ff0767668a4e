"""Every algorithm against its box, step for step, in deterministic runs."""

import numpy as np
import pytest

import unpooled as up
from tests.algorithms import literal

LAM = 0.1
STEPS = [1, 2, 3, 7, 10]


def final(algorithm, data, w0, rounds=25, problem=None):
    problem = problem or up.Problem(up.Squared(), up.L1(LAM))
    return up.simulate(algorithm, problem, data, rounds=rounds, w0=w0).w


@pytest.mark.parametrize("E", STEPS)
@pytest.mark.parametrize("a", [800.0, 3000.0, np.inf])
def test_fast_fedda_equals_the_two_vector_box(uneven, boxes, start, E, a):
    schedule = "uniform" if np.isinf(a) else "polynomial"
    algorithm = up.FastFedDA(mu=0.3, gamma=60.0, local_steps=E, schedule=schedule, a=a)
    expected = literal.fast_fedda(boxes, LAM, start, 0.3, 60.0, a, E, 25)
    np.testing.assert_allclose(final(algorithm, uneven, start), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("E", STEPS)
@pytest.mark.parametrize("a", [80.0, np.inf])
def test_c_fedda_equals_its_box(uneven, boxes, start, E, a):
    schedule = "uniform" if np.isinf(a) else "polynomial"
    algorithm = up.CFedDA(mu=0.3, gamma=60.0, local_steps=E, schedule=schedule, a=a)
    expected = literal.c_fedda(boxes, LAM, start, 0.3, 60.0, a, E, 25)
    np.testing.assert_allclose(final(algorithm, uneven, start), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("schedule", ["uniform", "polynomial"])
def test_c_fedda_with_one_step_and_no_radius_is_fast_fedda(uneven, start, schedule):
    numbers = {"mu": 0.2, "gamma": 50.0, "local_steps": 1, "schedule": schedule}
    fast, constrained = up.FastFedDA(**numbers), up.CFedDA(**numbers)
    for output in ("last", "average"):
        a = final(up.FastFedDA(**numbers, output=output), uneven, start)
        b = final(up.CFedDA(**numbers, output=output), uneven, start)
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-13)
    assert not np.allclose(final(fast, uneven, start), final(constrained, uneven, start, rounds=24))


@pytest.mark.parametrize("E", STEPS)
def test_fedda_is_fast_fedda_without_mu(uneven, start, E):
    step = 0.01
    fast = up.FastFedDA(mu=0.0, gamma=1 / step, local_steps=E, schedule="uniform")
    a, b = (final(algorithm, uneven, start) for algorithm in (up.FedDA(step=step, local_steps=E), fast))
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-13)


@pytest.mark.parametrize("E", STEPS)
@pytest.mark.parametrize("server_step", [1.0, 0.6])
def test_fedda_equals_its_box(uneven, boxes, start, E, server_step):
    algorithm = up.FedDA(step=0.01, local_steps=E, server_step=server_step)
    expected = literal.fedda(boxes, LAM, start, 0.01, server_step, E, 25)
    np.testing.assert_allclose(final(algorithm, uneven, start), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("server_prox", ["round", "step"])
@pytest.mark.parametrize("server_step", [1.0, 0.6])
def test_fedmid_equals_its_box(uneven, boxes, start, server_prox, server_step):
    algorithm = up.FedMiD(step=0.01, local_steps=4, server_step=server_step, server_prox=server_prox)
    expected = literal.fedmid(boxes, LAM, start, 0.01, server_step, 4, 25, server_prox)
    np.testing.assert_allclose(final(algorithm, uneven, start), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("server_step", [1.0, 0.6])
def test_fedavg_and_scaffold_equal_their_boxes(uneven, boxes, start, server_step):
    smooth = up.Problem(up.Squared(), up.Zero())
    for algorithm, box in ((up.FedAvg, literal.fedavg), (up.Scaffold, literal.scaffold)):
        ours = final(algorithm(step=0.01, local_steps=4, server_step=server_step), uneven, start, 25, smooth)
        expected = box(boxes, start, 0.01, server_step, 4, 25)
        np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-12)


def test_average_is_the_weighted_mean_of_the_server_iterates(uneven, start):
    """Σ_r α_r w̄_{r+1} / A_R for C-FedDA; the α-mass of each round for Fast-FedDA."""
    R, a = 12, 6.0
    numbers = {"mu": 0.3, "gamma": 60.0, "local_steps": 3, "a": a}
    for kind, mass in (
        (up.CFedDA, lambda r: (1 + r / a) ** 2),
        (up.FastFedDA, lambda r: sum((1 + t / a) ** 2 for t in range(3 * r, 3 * r + 3))),
    ):
        iterates = [final(kind(**numbers), uneven, start, r + 1) for r in range(R)]
        weights = np.array([mass(r) for r in range(R)])
        expected = np.average(iterates, axis=0, weights=weights)
        ours = final(kind(**numbers, output="average"), uneven, start, R)
        np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-12)


def test_mc_fedda_is_a_chain_of_c_feddas(uneven, start):
    stages = [(5, 0.4, 30.0), (8, 0.2, np.inf), (12, LAM, np.inf)]
    numbers = {"mu": 0.3, "gamma": 60.0, "local_steps": 3, "schedule": "uniform"}
    w = start
    for rounds, lam, radius in stages:
        problem = up.Problem(up.Squared(), up.L1(lam))
        w = final(up.CFedDA(**numbers, radius=radius), uneven, w, rounds, problem)
    chained = up.simulate(
        up.MCFedDA(**numbers, stages=stages), up.Problem(up.Squared(), up.L1(LAM)), uneven, w0=start
    )
    np.testing.assert_allclose(chained.w, w, rtol=0, atol=1e-13)
    assert chained.ledger.rounds == 25
