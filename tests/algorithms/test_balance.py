"""Defaults that fit the run: local steps, the length of steps and when they shrink, on data of real shape."""

import math

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import Lasso

import unpooled as up
from unpooled.algorithms.balance import Horizon, balanced, left
from unpooled.algorithms.curvature import Curvature

EVERYTHING_OPEN = [up.FastFedDA(), up.CFedDA(), up.MCFedDA()]
NAMES = ["Fast-FedDA", "C-FedDA", "MC-FedDA"]


def sites(y, count, seed):
    """Sites of very different size: the k-th has a share in proportion to k²."""
    share = np.arange(1, count + 1) ** 2
    return np.random.default_rng(seed).choice(count, len(y), p=share / share.sum())


@pytest.fixture(scope="module")
def diabetes():
    """A data set, a problem with λ = λmax/50, and the optimum by scikit-learn."""
    bunch = load_diabetes()
    X = bunch.data / bunch.data.std(axis=0)
    y = (bunch.target - bunch.target.mean()) / bunch.target.std()
    data = up.FederatedData.from_arrays(X, y, sites(y, 12, 0))
    lam = 0.02 * np.abs(X.T @ y).max() / len(y)
    problem = up.Problem(up.Squared(), up.L1(lam))
    fit = Lasso(alpha=lam, fit_intercept=False, tol=1e-14, max_iter=1_000_000).fit(X, y)
    return data, problem, problem.objective(fit.coef_, data)


@pytest.fixture(scope="module")
def cancer():
    bunch = load_breast_cancer()
    X = (bunch.data - bunch.data.mean(axis=0)) / bunch.data.std(axis=0)
    y = bunch.target.astype(float)
    data = up.FederatedData.from_arrays(X, y, sites(y, 8, 1))
    return data, up.Problem(up.Logistic(), up.L1(0.02 * np.abs(X.T @ (y - 0.5)).max() / len(y)))


@pytest.fixture(scope="module")
def outlier():
    """Eleven sites of 100 ordinary rows and one with a single long row, which makes the worst client."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal(10)
    clients = []
    for n, size in [(100, 1.0)] * 11 + [(1, 12.0)]:
        X = size * rng.standard_normal((n, 10))
        clients.append((X, X @ (w + 0.3 * rng.standard_normal(10)) + rng.standard_normal(n)))
    return up.FederatedData.from_clients(clients)


@pytest.mark.parametrize("algorithm", EVERYTHING_OPEN, ids=NAMES)
def test_defaults_reach_the_optimum_of_real_data(diabetes, algorithm):
    data, problem, optimum = diabetes
    run = up.simulate(algorithm, problem, data, rounds=1000)
    assert run.history["objective"][-1] == pytest.approx(optimum, rel=1e-8)
    assert run.settings["algorithm"]["local_steps"] == 1
    assert any(note.startswith("local_steps = 1: with full gradients of all clients") for note in run.notes)


@pytest.mark.parametrize("options", [{}, {"batch_size": 10}, {"cohort": 3}], ids=["full", "rows", "clients"])
def test_ten_local_steps_end_nearer_than_with_the_measured_numbers(diabetes, options):
    """Steps that shrink in time for the run's end leave less drift and noise than those of the data alone."""
    data, problem, optimum = diabetes
    gaps = {}
    for schedule in ("polynomial", "measured"):
        algorithm = up.FastFedDA(local_steps=10, schedule=schedule)
        runs = [
            up.simulate(algorithm, problem, data, rounds=200, every=200, seed=seed, **options)
            for seed in range(1 if not options else 3)
        ]
        gaps[schedule] = np.mean([run.history["objective"][-1] for run in runs]) - optimum
    assert 0 < gaps["polynomial"] < 0.5 * gaps["measured"]


def test_local_steps_pay_in_a_short_run_with_a_long_way_to_go(cancer):
    data, problem = cancer
    run = up.simulate(up.FastFedDA(), problem, data, rounds=60)
    assert run.settings["algorithm"]["local_steps"] == 10
    one = up.simulate(up.FastFedDA(local_steps=1), problem, data, rounds=60)
    assert run.history["objective"][-1] < one.history["objective"][-1]


def test_local_steps_are_ten_where_they_are_not_chosen(diabetes):
    data, problem, _ = diabetes
    for options in ({"batch_size": 10}, {"cohort": 3}):
        run = up.simulate(up.FastFedDA(), problem, data, rounds=5, **options)
        assert run.settings["algorithm"]["local_steps"] == 10
    for given in ({"mu": 0.1}, {"gamma": 5.0}, {"a": 9.0}, {"schedule": "uniform"}, {"schedule": "measured"}):
        assert up.FastFedDA(**given).local_steps == 10
    assert up.FastFedDA().local_steps is None
    with pytest.raises(ValueError, match=r"open hyper-parameters; simulate chooses them"):
        up.FastFedDA().plan(None, 0)


def test_a_run_with_an_outlying_client_says_that_steps_are_short(outlier):
    problem = up.Problem(up.Squared(), up.L1(0.02))
    ten = up.simulate(up.FastFedDA(local_steps=10), problem, outlier, rounds=30)
    assert any(
        note.startswith("short steps are expected to limit this run: one client") for note in ten.notes
    )
    one = up.simulate(up.FastFedDA(), problem, outlier, rounds=30)
    assert one.settings["algorithm"]["local_steps"] == 1
    fit = Lasso(alpha=0.02, fit_intercept=False, tol=1e-12).fit(outlier.X, outlier.y)
    best = problem.objective(fit.coef_, outlier)
    assert one.history["objective"][-1] - best < 0.1 * (ten.history["objective"][-1] - best)


@pytest.mark.parametrize(
    ("local_steps", "rounds", "options", "term"),
    [
        (10, 100, {}, "the drift of 10 local steps"),
        (10, 100, {"batch_size": 5}, "the noise of sampled clients or rows"),
        (1, 3, {}, "the number of steps"),
    ],
)
def test_the_term_that_limits_a_run_is_said(diabetes, local_steps, rounds, options, term):
    data, problem, _ = diabetes
    algorithm = up.FastFedDA(local_steps=local_steps)
    run = up.simulate(algorithm, problem, data, rounds=rounds, every=rounds, **options)
    assert [note for note in run.notes if note.startswith(term)]
    assert sum("expected to limit this run" in note for note in run.notes) == 1


def test_a_run_that_nothing_limits_says_nothing():
    data = up.datasets.sparse_regression(seed=0, n_clients=5, n_rows=200, n_features=10, sparsity=3)
    run = up.simulate(up.FastFedDA(), up.Problem(up.Squared(), up.L1(0.1)), data, rounds=400)
    assert "expected to limit" not in run.summary()


def test_round_smoothness_is_between_pooled_and_worst(outlier):
    """All clients: the pooled top eigenvalue; one client: that of its part of the mean, Kπ_kL_k."""
    problem = up.Problem(up.Squared(), up.L1(0.02))
    pooled = np.linalg.eigvalsh(outlier.X.T @ outlier.X / outlier.n_rows)[-1]
    alone = max(
        outlier.n_clients * share * np.linalg.eigvalsh(client.X.T @ client.X / client.n_rows)[-1]
        for share, client in zip(outlier.weights, outlier, strict=True)
    )
    assert Curvature(problem, outlier, None).round_smoothness == pytest.approx(pooled, rel=1e-8)
    assert Curvature(problem, outlier, None, 1).round_smoothness == pytest.approx(alone, rel=0.05)
    middle = Curvature(problem, outlier, None, 4).round_smoothness
    assert pooled < middle < alone
    assert Curvature(problem, outlier, 5, 4).round_smoothness > middle


def test_what_is_left_follows_from_the_steps(diabetes):
    """On a pooled quadratic, gradient flow leaves what the eigenvalues say."""
    data, problem, _ = diabetes
    curvature, horizon = Curvature(problem, data, None), Horizon.of(50, 1, per_round=False)
    theta, Q = np.linalg.eigh(data.X.T @ data.X / data.n_rows)
    u = Q.T @ _fixed(data.n_features)
    gap = u**2 * theta**1.5
    truth = np.sum(gap * np.exp(-2 * theta * 50 / 3.0)) / np.sum(gap)
    assert left(curvature, 3.0, math.inf, horizon).steps == pytest.approx(truth, rel=1e-6)
    assert balanced(curvature, 3.0, horizon) == math.inf  # without drift and noise all steps stay long
    ten = Horizon.of(50, 10, per_round=False)
    assert balanced(curvature, 13.0, ten) < math.inf
    shrinking, constant = (left(curvature, 13.0, a, ten) for a in (100.0, math.inf))
    assert shrinking.drift < constant.drift
    assert shrinking.steps > constant.steps


def _fixed(size):
    from unpooled.kernels.linalg.lanczos import fixed_direction

    u = fixed_direction(size)
    return u / np.linalg.norm(u)


def test_a_restart_keeps_the_local_steps_that_were_chosen(diabetes, monkeypatch):
    data, problem, _ = diabetes
    monkeypatch.setattr("unpooled.algorithms.tuning.SAFETY", 0.02)
    run = up.simulate(up.FastFedDA(), problem, data, rounds=200)
    assert run.status == "completed"
    assert any("started again with half the step, gamma = " in note for note in run.notes)
    assert run.settings["algorithm"]["local_steps"] == 1


def test_a_run_saved_when_local_steps_were_given_is_resumed_with_them_open(diabetes, tmp_path):
    """Older files have local_steps=10 where the user left it out."""
    data, problem, _ = diabetes
    half = up.simulate(up.FastFedDA(local_steps=10), problem, data, rounds=5).save(tmp_path / "half.run")
    rest = up.simulate(up.FastFedDA(), problem, data, rounds=9, resume=half)
    assert rest.settings["algorithm"]["local_steps"] == 10
    with pytest.raises(ValueError, match="local_steps: 10 then, 3 now"):
        up.simulate(up.FastFedDA(local_steps=3), problem, data, rounds=9, resume=half)


def test_a_given_gamma_costs_no_round_to_speak_of_steps(outlier):
    problem = up.Problem(up.Squared(), up.L1(0.02))
    run = up.simulate(up.FastFedDA(gamma=1000.0), problem, outlier, rounds=5)
    assert run.ledger.setup_rounds == 10  # Lanczos's, in ten dimensions
    assert any(note.startswith("the number of steps is expected to limit") for note in run.notes)


def test_rows_of_zeros_with_a_given_gamma():
    data = up.FederatedData.from_arrays(np.zeros((6, 2)), np.arange(6.0), [0, 0, 1, 1, 2, 2])
    run = up.simulate(up.FastFedDA(gamma=1.0), up.Problem(up.Squared(), up.L1(0.1)), data, rounds=3)
    assert run.status == "completed"
    assert np.array_equal(run.w, np.zeros(2))
