"""The answer does not depend on which site holds which row, nor on how rows are stored."""

import numpy as np
import pytest
from scipy import sparse

import unpooled as up
from tests.exact.federations import LOSSES, rows


def clients_of(n, sites):
    """Ids of ragged sites; of fifty, many have one row."""
    if sites == 50:
        return np.minimum(np.arange(n) // 2, 49) if n < 100 else np.minimum(np.arange(n), 49)
    return np.arange(n) ** 2 % sites


def fitted(kind, X, y, clients, solver, penalty=None, **options):
    data = up.FederatedData.from_arrays(X, y, clients, **options)
    problem = up.Problem(LOSSES[kind], penalty or up.L1(0.05), True)
    return up.solve(problem, data, solver=solver, tol=1e-12, min_rows=0)


@pytest.mark.parametrize("kind", LOSSES)
def test_any_split_gives_the_same_model(kind):
    X, y, _ = rows(kind, n=150, p=10)
    order = np.argsort(y, kind="stable")  # so that many sites hold one class only
    X, y = X[order], y[order]
    whole = fitted(kind, X, y, np.zeros(150, int), "auto")
    for sites in (2, 7, 50):
        clients = clients_of(150, sites)
        assert np.bincount(clients).min() == 1 or sites < 50
        split = fitted(kind, X, y, clients, "auto")
        np.testing.assert_allclose(split.w, whole.w, atol=1e-10)
        np.testing.assert_allclose(split.intercept, whole.intercept, atol=1e-10)
        assert split.certificate.objective == pytest.approx(whole.certificate.objective, rel=1e-12)


@pytest.mark.parametrize("solver", ["anderson", "fista"])
def test_gradient_solvers_agree_over_splits(solver):
    X, y, _ = rows("logistic", n=150, p=10)
    whole = fitted("logistic", X, y, np.zeros(150, int), solver)
    for sites in (2, 7, 50):
        split = fitted("logistic", X, y, clients_of(150, sites), solver)
        assert split.certificate.objective == pytest.approx(whole.certificate.objective, rel=1e-10)


@pytest.mark.parametrize("kind", LOSSES)
def test_csr_rows(kind):
    X, y, clients = rows(kind, n=120, p=10)
    X = X * (np.random.default_rng(0).random(X.shape) < 0.4)
    for solver in ("auto", "anderson"):
        dense, csr = (fitted(kind, A, y, clients, solver) for A in (X, sparse.csr_array(X)))
        np.testing.assert_allclose(csr.w, dense.w, atol=1e-9)


@pytest.mark.parametrize("kind", LOSSES)
def test_sample_weights_are_repeated_rows(kind):
    X, y, clients = rows(kind, n=90, p=8, sites=3)
    times = np.random.default_rng(0).integers(1, 4, 90)
    weighted = fitted(kind, X, y, clients, "auto", sample_weight=times)
    repeated = fitted(kind, *(np.repeat(a, times, axis=0) for a in (X, y, clients)), "auto")
    np.testing.assert_allclose(weighted.w, repeated.w, atol=1e-9)
    np.testing.assert_allclose(weighted.intercept, repeated.intercept, atol=1e-9)


def test_uniform_client_weights_change_the_objective_as_stated():
    X, y, _ = rows("squared", n=100, p=5)
    clients = np.repeat([0, 1], [80, 20])
    fit = fitted("squared", X, y, clients, "auto", weights="uniform")
    share = np.where(clients == 0, 0.5 / 80, 0.5 / 20)
    r = X @ fit.w + fit.intercept - y
    pull = X.T @ (share * r)
    np.testing.assert_allclose(share @ r, 0.0, atol=1e-12)
    np.testing.assert_allclose(pull[fit.w != 0], -0.05 * np.sign(fit.w[fit.w != 0]), atol=1e-12)
    assert (np.abs(pull) <= 0.05 + 1e-12).all()


def test_float32_rows_are_summed_in_float64():
    X, y, clients = rows("logistic", n=120, p=8)
    single = fitted("logistic", X.astype(np.float32), y, clients, "auto")
    double = fitted("logistic", X.astype(np.float32).astype(float), y, clients, "auto")
    np.testing.assert_allclose(single.w, double.w, atol=1e-6)
    assert single.converged


def test_far_means_do_not_cost_digits():
    X, y, clients = rows("squared", n=200, p=6)
    near = fitted("squared", X, y, clients, "auto")
    far = fitted("squared", X + 1e6, y + 1e7, clients, "auto")
    assert near.rounds == 1
    assert far.rounds == 2
    assert any("centred" in note for note in far.notes)
    np.testing.assert_allclose(far.w, near.w, atol=1e-8)
    sparse_far = fitted("squared", sparse.csr_array(X + 30.0), y, clients, "auto")
    np.testing.assert_allclose(sparse_far.w, near.w, atol=1e-9)
