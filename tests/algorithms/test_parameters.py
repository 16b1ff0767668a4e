"""Hyper-parameters: refused where wrong, chosen where open, and the run says what was chosen."""

import dataclasses

import numpy as np
import pytest

import unpooled as up
from unpooled.algorithms.curvature import Curvature
from unpooled.algorithms.mc_fedda import halving_stages
from unpooled.algorithms.schedule import alpha, total

PROBLEM = up.Problem(up.Squared(), up.L1(0.1))


@pytest.fixture(scope="module")
def data():
    return up.datasets.sparse_regression(seed=2, n_clients=8, n_rows=40, n_features=20, sparsity=5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: up.FastFedDA(mu=-1.0), r"mu must be a number ≥ 0, got -1.0"),
        (lambda: up.FastFedDA(mu=np.nan), r"mu must be"),
        (lambda: up.FastFedDA(gamma=0.0), r"gamma must be a positive number, got 0.0"),
        (lambda: up.FastFedDA(local_steps=0), r"local_steps must be a whole number ≥ 1, got 0"),
        (lambda: up.FastFedDA(local_steps=1.5), r"local_steps must be a whole number"),
        (lambda: up.FastFedDA(local_steps="a"), r"local_steps must be a whole number ≥ 1, got 'a'"),
        (lambda: up.FastFedDA(local_steps=np.inf), r"local_steps must be a whole number"),
        (lambda: up.FastFedDA(gamma="a"), r"gamma must be a positive number, got 'a'"),
        (lambda: up.FedDA(step=np.array([1.0, 2.0])), r"step must be a positive number, got array"),
        (lambda: up.Problem(up.Squared(), up.Zero(), ball="a"), r"ball must be positive"),
        (lambda: up.FastFedDA(schedule="cosine"), r"schedule must be one of polynomial, uniform, theory"),
        (lambda: up.FastFedDA(output="best"), r"output must be one of last, average, got 'best'"),
        (lambda: up.FastFedDA(a=-1.0), r"a must be positive"),
        (lambda: up.FastFedDA(a=3.0, schedule="uniform"), r"the uniform schedule has no a"),
        (lambda: up.CFedDA(radius=-1.0), r"radius must be a number ≥ 0"),
        (lambda: up.FedDA(step=-1e-3), r"step must be a positive number, got -0.001"),
        (lambda: up.FedAvg(step=np.inf), r"step must be a positive number, got inf"),
        (lambda: up.FedMiD(server_prox="both"), r"server_prox must be one of round, step, got 'both'"),
        (lambda: up.Scaffold(server_step=0), r"server_step must be a positive number"),
        (lambda: up.MCFedDA(stages=[(1, 0.1)]), r"stage 0 must be \(rounds, lam, radius\)"),
        (lambda: up.MCFedDA(stages=[(1, 0.1, 1), (0, 0.1, 1)]), r"stage 1 needs rounds ≥ 1"),
        (lambda: up.MCFedDA(stages=[]), r"stages is empty"),
        (lambda: up.MCFedDA(stages=[(1, 0.1, 1)], lambda0=1.0), r"give stages or lambda0, not both"),
        (lambda: up.MCFedDA(lambda0=-1.0), r"lambda0 must be a positive number"),
    ],
)
def test_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_schedule_in_closed_form():
    t = np.arange(50)
    np.testing.assert_allclose(total(t, 7.0), np.cumsum(alpha(t, 7.0)), rtol=1e-13)
    assert total(-1, 7.0) == 0.0
    np.testing.assert_array_equal(alpha(t, np.inf), np.ones(50))
    np.testing.assert_array_equal(total(t, np.inf), t + 1.0)


def test_expected_smoothness_is_the_formula(data):
    """Against eigenvalues from NumPy; five power iterations are a lower bound within a few percent."""
    for b in (1, 10, None):
        worst = 0.0
        for client in data:
            n = client.n_rows
            size = b or n
            L = np.linalg.eigvalsh(client.X.T @ client.X / n)[-1]
            row = (client.X**2).sum(axis=1).max()
            worst = max(worst, (n - size) / (size * (n - 1)) * row + n * (size - 1) / (size * (n - 1)) * L)
        measured = Curvature(PROBLEM, data, b).smoothness
        assert 0.95 * worst <= measured <= worst * (1 + 1e-12)


def test_strong_convexity_is_the_smallest_eigenvalue(data):
    """Twenty Lanczos steps in twenty dimensions are exact."""
    smallest = np.linalg.eigvalsh(data.X.T @ data.X / data.n_rows)[0]
    assert Curvature(PROBLEM, data, None).strong_convexity == pytest.approx(smallest, rel=1e-8)


def test_measured_numbers_follow_the_rule_and_are_said(data):
    run = up.simulate(up.FastFedDA(schedule="measured"), PROBLEM, data, rounds=50, batch_size=10, cohort=4)
    chosen = run.settings["algorithm"]
    curvature = Curvature(PROBLEM, data, 10)
    assert chosen["gamma"] == pytest.approx(0.75 * curvature.smoothness)
    assert chosen["mu"] == pytest.approx(curvature.strong_convexity)
    assert chosen["a"] == pytest.approx(4 * chosen["gamma"] / chosen["mu"])
    said = "\n".join(run.notes)
    for name in ("gamma = ", "mu = ", "a = "):
        assert name in said
    assert "gamma = " in repr(run)
    assert run.ledger.setup_rounds == 21
    assert chosen["local_steps"] == 10
    c = up.simulate(up.CFedDA(schedule="measured"), PROBLEM, data, rounds=50, batch_size=10)
    c = c.settings["algorithm"]
    assert c["gamma"] == pytest.approx(chosen["gamma"] / 10)


def test_a_schedule_whose_steps_grow_is_said(data):
    said = up.simulate(up.FastFedDA(mu=0.1, gamma=50.0, a=1500.0), PROBLEM, data, rounds=2).notes
    assert said == ["a = 1500 is below 4 gamma / mu = 2000: steps grow before they shrink"]
    assert up.simulate(up.FastFedDA(mu=0.1, gamma=50.0, a=2000.0), PROBLEM, data, rounds=2).notes == []


def test_without_strong_convexity_a_is_a_quarter_of_the_run():
    wide = up.datasets.sparse_regression(seed=0, n_clients=4, n_rows=5, n_features=60, sparsity=3)
    algorithm = up.FastFedDA(local_steps=5, schedule="measured")
    run = up.simulate(algorithm, PROBLEM, wide, rounds=40, batch_size=2)
    chosen = run.settings["algorithm"]
    assert chosen["a"] == pytest.approx(40 * 5 / 4)
    assert chosen["mu"] == pytest.approx(4 * chosen["gamma"] / chosen["a"])
    said = (
        f"mu = {chosen['mu']:.4g}: 4 gamma / 50, a quarter of the run, for the data shows no strong convexity"
    )
    assert said in run.notes


@pytest.mark.parametrize(
    "algorithm",
    [up.FastFedDA(), up.CFedDA(), up.MCFedDA(), up.FedDA(), up.FedMiD(), up.Scaffold(), up.FedAvg()],
    ids=lambda algorithm: type(algorithm).__name__,
)
@pytest.mark.parametrize("loss", [up.Squared(), up.Logistic()], ids=["squared", "logistic"])
def test_defaults_make_progress(algorithm, loss):
    """Without a single number given, each method brings the objective most of the way to the optimum.

    FedMiD thresholds twice, at the clients and at the server, and FedAvg not at all: they stop further off.
    """
    classify = isinstance(loss, up.Logistic)
    make = up.datasets.sparse_classification if classify else up.datasets.sparse_regression
    data = make(seed=1, n_clients=10, n_rows=60, n_features=30, sparsity=6)
    problem = up.Problem(loss, up.L1(0.02))
    best = up.simulate(up.FastFedDA(local_steps=1), problem, data, rounds=3000).history["objective"][-1]
    run = up.simulate(algorithm, problem, data, rounds=400, batch_size=10, cohort=5, seed=0)
    assert run.status == "completed"
    first, last = run.history["objective"][[0, -1]]
    assert last - best < (0.15 if isinstance(algorithm, up.FedMiD | up.FedAvg) else 0.1) * (first - best)


def test_the_theory_preset(data):
    run = up.simulate(up.FastFedDA(schedule="theory"), PROBLEM, data, rounds=5)
    chosen, curvature = run.settings["algorithm"], Curvature(PROBLEM, data, None)
    assert chosen["a"] == pytest.approx(4 * curvature.smoothness / chosen["mu"])
    assert chosen["gamma"] == pytest.approx(2 * chosen["mu"] * chosen["a"])
    given = up.simulate(up.FastFedDA(mu=0.1, gamma=30.0, schedule="theory"), PROBLEM, data, rounds=5)
    assert given.settings["algorithm"]["a"] == pytest.approx(30.0 / 0.2)
    with pytest.raises(ValueError, match=r"means gamma = 2 mu a = 2, got gamma = 30"):
        up.simulate(up.FastFedDA(mu=0.1, gamma=30.0, a=10.0, schedule="theory"), PROBLEM, data, rounds=5)
    with pytest.raises(ValueError, match=r"needs strong convexity"):
        up.simulate(up.FastFedDA(mu=0.0, schedule="theory"), PROBLEM, data, rounds=5)


def test_a_chosen_step_that_diverges_is_halved_and_said(data, monkeypatch):
    monkeypatch.setattr("unpooled.algorithms.tuning.SAFETY", 0.02)
    for algorithm, name in ((up.FastFedDA(mu=0.0), "gamma"), (up.FedAvg(), "step")):
        run = up.simulate(algorithm, PROBLEM, data, rounds=200)
        assert run.status == "completed"
        restarts = [note for note in run.notes if "started again with half the step" in note]
        assert restarts
        first = 0.02 * Curvature(PROBLEM, data, None).smoothness * 2 ** len(restarts)
        chosen = run.settings["algorithm"][name]
        assert chosen == pytest.approx(first if name == "gamma" else 1 / first)


@pytest.mark.parametrize("count", range(1, 24))
def test_every_halving_stage_has_a_round(count):
    for rounds in range(count, count + 60):
        lengths = [n for n, _, _ in halving_stages(0.1 * 2.0 ** (count - 1), 0.1, rounds)]
        assert len(lengths) == count
        assert sum(lengths) == rounds
        assert min(lengths) >= 1
        assert lengths == sorted(lengths)


def test_many_local_steps_keep_few_weights():
    algorithm = up.FastFedDA(mu=0.1, gamma=1.0, a=40.0, local_steps=20_000)
    few = up.FastFedDA(mu=0.1, gamma=1.0, a=40.0, local_steps=100)
    plan = algorithm.plan(None, 3)
    assert plan.alpha.base.size == 20_000
    for r in (0, 63, 64, 199):  # the weights belong to the step, whatever is computed with them
        assert np.array_equal(few.plan(None, 600 + r).alpha, plan.alpha[100 * r : 100 * r + 100])


def test_halving_stages():
    stages = halving_stages(0.8, 0.1, 850, radius=16.0)
    assert [lam for _, lam, _ in stages] == [0.8, 0.4, 0.2, 0.1]
    assert [n for n, _, _ in stages] == [10, 40, 160, 640]
    assert [radius for _, _, radius in stages] == [16.0, 8.0, 4.0, 2.0]
    assert [lam for _, lam, _ in halving_stages(0.5, 0.1, 100)] == [0.5, 0.25, 0.125, 0.1]
    assert sum(n for n, _, _ in halving_stages(0.5, 0.1, 101)) == 101
    assert len(halving_stages(0.1, 0.1, 5)) == 1
    for arguments, message in [
        ((0.05, 0.1, 10), "must not be below"),
        ((1.0, 0.1, 3), r"5 stages .* need as many rounds, got 3"),
        ((1.0, 0.0, 30), "needs a penalty with lam > 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            halving_stages(*arguments)


def test_a_theory_preset_that_diverges_is_a_run(data):
    run = up.simulate(up.FastFedDA(schedule="theory", a=0.01), PROBLEM, data, rounds=300)
    assert run.status == "diverged"


def test_whole_floats_are_whole_numbers(data):
    run = up.simulate(up.FedDA(step=0.01, local_steps=3.0), PROBLEM, data, rounds=2)
    assert run.settings["algorithm"]["local_steps"] == 3


def test_mc_fedda_says_when_its_last_stage_has_another_lambda(data):
    algorithm = up.MCFedDA(mu=0.1, gamma=10.0, stages=[(3, 0.5, np.inf)])
    assert "the last stage has λ = 0.5, not the problem's 0.1" in up.simulate(algorithm, PROBLEM, data).notes


def test_mc_fedda_rounds(data):
    algorithm = up.MCFedDA(mu=0.1, gamma=10.0, stages=[(3, 0.2, np.inf), (4, 0.1, np.inf)])
    assert up.simulate(algorithm, PROBLEM, data).ledger.rounds == 7
    assert up.simulate(algorithm, PROBLEM, data, rounds=2).ledger.rounds == 2
    with pytest.raises(ValueError, match=r"rounds=8, but the stages of MCFedDA end after 7"):
        up.simulate(algorithm, PROBLEM, data, rounds=8)
    run = up.simulate(up.MCFedDA(mu=0.1, gamma=10.0), PROBLEM, data, rounds=21)
    assert run.settings["algorithm"]["stages"] == [[1, 0.4, np.inf], [4, 0.2, np.inf], [16, 0.1, np.inf]]
    assert any(note.startswith("stages (rounds, λ, radius)") for note in run.notes)


def test_open_hyper_parameters_are_refused_outside_simulate(data):
    bound = PROBLEM.bind(data)
    for algorithm in (up.FastFedDA(), up.FedDA(), up.FedAvg()):
        with pytest.raises(ValueError, match="simulate chooses"):
            algorithm.plan(bound, 0)
    assert dataclasses.is_dataclass(up.FastFedDA)
