"""Where each algorithm converges, and where it is known to stall."""

import warnings

import cvxpy as cp
import numpy as np
import pytest
from sklearn.linear_model import Lasso

import unpooled as up


@pytest.fixture(scope="module")
def hospitals():
    """Four clients whose data differ much, with more rows than features in all."""
    rng = np.random.default_rng(11)
    p, clients = 8, []
    for k, n in enumerate((30, 45, 20, 60)):
        X = (1 + 0.3 * k) * rng.standard_normal((n, p)) + rng.standard_normal(p)
        truth = np.r_[np.ones(3), np.zeros(p - 3)] + 0.5 * rng.standard_normal(p)
        clients.append((X, X @ truth + rng.standard_normal(n)))
    return up.FederatedData.from_clients(clients)


def constrained_optimum(data, penalty_of, lam, center, radius, shape):
    w = cp.Variable(shape)
    X = np.asarray(data.X).reshape(len(data.y), -1)
    residual = data.y - X @ cp.vec(w, order="C") if len(shape) == 2 else data.y - X @ w
    objective = cp.sum_squares(residual) / (2 * len(data.y)) + lam * penalty_of(w)
    problem = cp.Problem(cp.Minimize(objective), [penalty_of(w - center) <= radius])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate")  # it is asked for its last digit
        problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return w.value


def test_c_fedda_reaches_the_constrained_optimum_l1(hospitals):
    center, lam, radius = 0.5 * np.ones(8), 0.1, 1.5
    expected = constrained_optimum(hospitals, cp.norm1, lam, center, radius, (8,))
    algorithm = up.CFedDA(mu=0.5, gamma=20.0, local_steps=1, radius=radius, schedule="uniform")
    run = up.simulate(algorithm, up.Problem(up.Squared(), up.L1(lam)), hospitals, rounds=4000, w0=center)
    assert np.abs(run.w - center).sum() == pytest.approx(radius, rel=1e-9)  # it is active
    np.testing.assert_allclose(run.w, expected, rtol=0, atol=1e-8)


def test_c_fedda_reaches_the_constrained_optimum_group(hospitals):
    groups = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    center, lam, radius = 0.3 * np.ones(8), 0.1, 1.0

    def norm(w):
        return sum(cp.norm2(w[2 * g : 2 * g + 2]) for g in range(4))

    expected = constrained_optimum(hospitals, norm, lam, center, radius, (8,))
    algorithm = up.CFedDA(mu=0.5, gamma=20.0, local_steps=1, radius=radius)
    problem = up.Problem(up.Squared(), up.GroupL2(lam, groups=groups))
    run = up.simulate(algorithm, problem, hospitals, rounds=4000, w0=center)
    assert problem.penalty.norm(run.w - center) == pytest.approx(radius, rel=1e-12)
    # an interior-point solver knows a curved optimum to about 1e-6; ours is at least as good
    np.testing.assert_allclose(run.w, expected, rtol=0, atol=2e-6)
    assert run.history["objective"][-1] <= problem.objective(expected, hospitals) + 1e-10


def test_c_fedda_reaches_the_constrained_optimum_nuclear():
    data = up.datasets.low_rank_regression(seed=1, n_clients=3, n_rows=30, shape=(3, 4), rank=1)
    center, lam, radius = np.full((3, 4), 0.1), 0.1, 0.5
    expected = constrained_optimum(data, cp.normNuc, lam, center, radius, (3, 4))
    algorithm = up.CFedDA(mu=0.3, gamma=25.0, local_steps=1, radius=radius)
    problem = up.Problem(up.Squared(), up.Nuclear(lam))
    run = up.simulate(algorithm, problem, data, rounds=2000, w0=center)
    assert np.linalg.norm(run.w - center, "nuc") == pytest.approx(radius, rel=1e-8)
    np.testing.assert_allclose(run.w, expected, rtol=0, atol=1e-5)
    assert run.history["objective"][-1] <= problem.objective(expected, data) + 1e-9


@pytest.mark.parametrize("kind", [up.FastFedDA, up.CFedDA])
def test_with_full_gradients_and_one_step_the_lasso_optimum_is_reached(hospitals, kind):
    lam = 0.2
    expected = Lasso(alpha=lam, fit_intercept=False, tol=1e-14, max_iter=10**6).fit(hospitals.X, hospitals.y)
    algorithm = kind(mu=0.5, gamma=20.0, local_steps=1, schedule="uniform")
    run = up.simulate(algorithm, up.Problem(up.Squared(), up.L1(lam)), hospitals, rounds=5000)
    np.testing.assert_allclose(run.w, expected.coef_, rtol=0, atol=1e-8)
    assert np.array_equal(run.w != 0, expected.coef_ != 0)


def test_an_intercept_is_not_penalised(hospitals):
    lam = 0.2
    shifted = up.FederatedData.from_clients([(c.X, c.y + 3.0) for c in hospitals])
    expected = Lasso(alpha=lam, tol=1e-14, max_iter=10**6).fit(shifted.X, shifted.y)
    problem = up.Problem(up.Squared(), up.L1(lam), intercept=True)
    algorithm = up.FastFedDA(mu=0.2, gamma=20.0, local_steps=1)
    run = up.simulate(algorithm, problem, shifted, rounds=6000)
    np.testing.assert_allclose(run.w, expected.coef_, rtol=0, atol=1e-7)
    assert run.intercept == pytest.approx(expected.intercept_, abs=1e-7)


def test_scaffold_is_linear_where_fedavg_stalls(hospitals):
    problem = up.Problem(up.Squared(), up.Zero())
    optimum = np.linalg.lstsq(hospitals.X, hospitals.y, rcond=None)[0]
    metrics = {"error": up.metrics.l2_error(optimum)}

    def errors(algorithm):
        return up.simulate(algorithm, problem, hospitals, rounds=400, metrics=metrics, every=40).history[
            "error"
        ]

    scaffold = errors(up.Scaffold(step=0.01, local_steps=5))
    fedavg = errors(up.FedAvg(step=0.02, local_steps=5))
    assert scaffold[-1] < 1e-11
    factors = scaffold[2:6] / scaffold[1:5]
    assert (factors < 0.2).all()  # each forty rounds take off about the same factor: linear
    assert factors.max() < 3 * factors.min()
    assert fedavg[-1] > 1e-2
    assert fedavg[-1] == pytest.approx(fedavg[-2], rel=1e-6)  # it has stopped, at a wrong point
    one_step = errors(up.FedAvg(step=0.05, local_steps=1))
    assert one_step[-1] < 1e-8


def test_scaffold_keeps_its_invariant_under_partial_participation(hospitals):
    """c = Σ_k π_k c_k after any rounds, and so it converges also with sampled cohorts."""
    problem = up.Problem(up.Squared(), up.Zero())
    optimum = np.linalg.lstsq(hospitals.X, hospitals.y, rcond=None)[0]
    for weighting in ("renormalised", "unbiased"):
        run = up.simulate(
            up.Scaffold(step=0.005, local_steps=3), problem, hospitals,
            rounds=6000, cohort=2, seed=3, weighting=weighting, every=6000,
        )  # fmt: skip
        mean = np.tensordot(hospitals.weights, run.memory[:, 0], axes=1)
        np.testing.assert_allclose(run.state.arrays["control"], mean, rtol=0, atol=1e-12)
        if weighting == "unbiased":
            assert np.linalg.norm(run.w - optimum) < 1e-2


def test_fedmid_and_fedavg_are_dense_where_fast_fedda_is_sparse():
    """The curse of primal averaging, on data with two thirds of the coefficients zero."""
    data = up.datasets.sparse_regression(seed=3, n_clients=10, n_rows=20, n_features=60, sparsity=20)
    problem = up.Problem(up.Squared(), up.L1(0.3))
    sizes = {}
    for algorithm in (
        up.FedMiD(step=0.005, local_steps=10, server_prox="step"),
        up.FedAvg(step=0.005, local_steps=10),
        up.FedDA(step=0.005, local_steps=10),
        up.FastFedDA(mu=0.1, gamma=200, local_steps=10, schedule="uniform"),
    ):
        run = up.simulate(algorithm, problem, data, rounds=600, batch_size=5, seed=1)
        sizes[type(algorithm).__name__] = int(np.sum(run.w != 0))
    assert sizes["FedAvg"] == 60
    assert sizes["FedMiD"] > sizes["FastFedDA"] + 5
    assert sizes["FedMiD"] > sizes["FedDA"] + 5
    assert sizes["FastFedDA"] < 45


def test_ball(hospitals):
    """‖w‖₂ ≤ ball holds at the end, and the optimum inside it is found."""
    w = cp.Variable(8)
    loss = cp.sum_squares(hospitals.y - hospitals.X @ w) / (2 * len(hospitals.y))
    cp.Problem(cp.Minimize(loss + 0.1 * cp.norm1(w)), [cp.norm2(w) <= 0.5]).solve(solver="CLARABEL")
    problem = up.Problem(up.Squared(), up.L1(0.1), ball=0.5)
    algorithm = up.FastFedDA(mu=0.5, gamma=20.0, local_steps=1, schedule="uniform")
    run = up.simulate(algorithm, problem, hospitals, rounds=3000)
    assert np.linalg.norm(run.w) <= 0.5 * (1 + 1e-12)
    np.testing.assert_allclose(run.w, w.value, rtol=0, atol=1e-5)
