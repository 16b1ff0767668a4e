"""What a fit costs: rounds, bytes and kinds of statistics."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import unpooled as up
from tests.exact.federations import LOSSES, federated, rows


def ten_sites(kind, shift, seed=0):
    """K = 10, n_k = 100, p = 200; the sites' means differ by ``shift``."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((10, 100, 200)) + shift * rng.standard_normal((10, 1, 200))
    w = np.zeros(200)
    w[:10] = rng.choice([-1.0, 1.0], 10)
    noise = rng.standard_normal((10, 100)) if kind == "squared" else rng.logistic(size=(10, 100))
    z = X @ w + noise
    y = z if kind == "squared" else (z > 0).astype(float)
    return up.FederatedData.from_clients(list(zip(X, y, strict=True)))


@pytest.mark.parametrize("shift", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_few_rounds(kind, shift):
    data = ten_sites(kind, shift)
    problem = up.Problem(LOSSES[kind], up.L1(1.0), True)
    problem = problem.with_lam(0.1 * up.lambda_max(problem, data))
    fit = up.solve(problem, data, tol=1e-9)
    assert fit.converged
    assert fit.rounds <= (1 if kind == "squared" else 8)
    if shift < 1.0:
        gradients = [up.solve(problem, data, tol=1e-9, solver=s).rounds for s in ("anderson", "fista")]
        assert fit.rounds < gradients[0] <= gradients[1]


@pytest.mark.parametrize("kind", LOSSES)
def test_newton_and_anderson_never_need_more_rounds_than_fista(kind):
    data = federated(kind)
    problem = up.Problem(LOSSES[kind], up.L1(0.03), True)
    rounds = {s: up.solve(problem, data, solver=s).rounds for s in ("auto", "anderson", "fista")}
    assert rounds["auto"] <= rounds["anderson"] <= rounds["fista"]


@pytest.mark.parametrize("solver", ["anderson", "fista"])
def test_small_features_do_not_wait_for_the_intercept(solver):
    data = federated("squared", n=200, p=12)
    small = up.FederatedData.from_arrays(0.01 * data.X, data.y, np.repeat(np.arange(5), 40))
    rounds = [
        up.solve(up.Problem(up.Squared(), up.L1(lam), True), rows, solver=solver).rounds
        for lam, rows in ((0.05, data), (0.0005, small))
    ]
    assert rounds[1] <= rounds[0] + 1


def test_the_ledger_counts_what_crossed():
    data = federated("squared", n=100, p=7, sites=5)
    fit = up.solve(up.Problem(up.Squared(), up.L1(0.1), True), data)
    gram, moments = 7 * 8 // 2, 7 + 1 + 7 + 1 + 1 + 1
    assert fit.ledger.rounds == 1
    assert fit.ledger.floats_up == 5 * (gram + moments + 2 + 1)  # two flags of refusal, the rows' weight
    assert fit.ledger.floats_down == 5 * 7
    assert fit.ledger.bytes_up == 8 * fit.ledger.floats_up
    assert "gram" in fit.ledger.kinds
    gradients = up.solve(up.Problem(up.Squared(), up.L1(0.1), True), data, solver="anderson")
    assert not {"gram", "hessian"} & set(gradients.ledger.kinds)
    assert {"gradient", "loss"} <= set(gradients.ledger.kinds)
    assert "left the sites: " in gradients.summary()


def test_a_large_problem_works_on_a_working_set():
    data = federated("logistic", n=200, p=800, sites=4)
    problem = up.Problem(up.Logistic(), up.L1(1.0), True)
    fit = up.solve(problem.with_lam(0.5 * up.lambda_max(problem, data)), data, tol=1e-9)
    assert fit.converged
    assert fit.solver == "prox-Newton"
    assert fit.ledger.floats_up < 4 * 0.25 * 800 * 801 / 2  # far from one full Hessian each
    peer = up.solve(fit.problem, data, tol=1e-10, solver="anderson")
    np.testing.assert_array_equal(peer.w != 0, fit.w != 0)


def test_a_warm_start_saves_rounds():
    data = federated("logistic")
    problem = up.Problem(up.Logistic(), up.L1(0.01), True)
    cold = up.solve(problem, data)
    warm = up.solve(problem, data, w0=cold.w, intercept0=cold.intercept)
    assert warm.rounds < cold.rounds
    np.testing.assert_allclose(warm.w, cold.w, atol=1e-6)


def test_history_has_a_row_for_every_evaluated_round():
    fit = up.solve(up.Problem(up.Logistic(), up.L1(0.01), True), federated("logistic"))
    np.testing.assert_array_equal(fit.history["round"], np.arange(1, fit.rounds + 1))
    assert fit.history["gap"][-1] == fit.certificate.gap
    assert (np.diff(fit.history["objective"]) <= 1e-12).all()


def test_more_than_rounding_allows_is_not_asked_for():
    data = federated("squared")
    with pytest.warns(ConvergenceWarning, match="raise tol"):
        fit = up.solve(up.Problem(up.Squared(), up.L1(0.05)), data, tol=1e-30)
    assert fit.rounds == 1
    assert not fit.converged
    assert fit.certificate.relative < 1e-12


@pytest.mark.parametrize("kind", ["l1", "group"])
@pytest.mark.parametrize("solver", ["anderson", "fista"])
def test_columns_in_other_units_cost_gradient_solvers_no_rounds(solver, kind):
    X, y, clients = rows("logistic", p=16, sites=4)
    groups = np.arange(16) // 4

    def fitted(of_group):
        weights = of_group[groups] if kind == "l1" else of_group  # of R(w), so that the model is the same
        penalty = up.L1(0.02, weights) if kind == "l1" else up.GroupL2(0.02, groups, weights)
        data = up.FederatedData.from_arrays(X * of_group[groups], y, clients)
        fit = up.solve(up.Problem(up.Logistic(), penalty, True), data, solver=solver, tol=1e-9)
        return fit.w * of_group[groups], fit

    w, plain = fitted(np.ones(4))
    moved, other = fitted(np.array([1e-3, 1.0, 1e3, 10.0]))
    assert other.converged
    assert other.rounds <= plain.rounds + 2
    np.testing.assert_allclose(moved, w, atol=1e-4)
