"""Exact solvers, paths and cross-validation through desks give the local answers."""

import numpy as np
import pytest

import unpooled as up
from tests.exact.federations import LOSSES, federated
from tests.remote.desks import apart, scattered
from unpooled.engines.remote.data import RemoteData


@pytest.mark.parametrize("kind", LOSSES)
def test_solve(kind):
    data = federated(kind)
    problem = up.Problem(LOSSES[kind], up.L1(0.05), intercept=True)
    here, there = up.solve(problem, data), up.solve(problem, RemoteData.of(scattered(data)))
    np.testing.assert_array_equal(here.w, there.w)
    np.testing.assert_array_equal(here.intercept, there.intercept)
    assert here.ledger == there.ledger
    assert here.notes == there.notes


@pytest.mark.parametrize("as_csr", [False, True])
@pytest.mark.parametrize("solver", ["auto", "prox_newton"])
def test_path_and_cross_validation(solver, as_csr):
    data = federated("squared", as_csr)
    problem = up.Problem(up.Squared(), up.L1(0.05), intercept=True)
    remote = apart(data)
    assert up.lambda_max(problem, data) == up.lambda_max(problem, remote)
    options = {"n_lambdas": 6, "solver": solver}
    here, there = (up.path(problem, rows, **options) for rows in (data, remote))
    np.testing.assert_array_equal(here.coefs, there.coefs)
    assert here.ledger == there.ledger
    for folds in (4, "sites"):
        here, there = (up.cross_validate(problem, rows, folds=folds, **options) for rows in (data, remote))
        np.testing.assert_array_equal(here.losses, there.losses)
        assert (here.lam, here.ledger) == (there.lam, there.ledger)
    with pytest.raises(ValueError, match="the sites alone know their rows"):
        up.cross_validate(problem, remote, folds=np.zeros(data.n_rows, int))


def test_groups_weights_and_site_intercepts():
    data = federated("logistic")
    for penalty in (up.GroupL2(0.02, np.arange(20) // 4), up.L1(0.02, weights=np.arange(20) / 10.0)):
        problem = up.Problem(up.Logistic(), penalty, intercept="sites")
        here, there = up.solve(problem, data), up.solve(problem, apart(data))
        np.testing.assert_array_equal(here.w, there.w)
        own, others = (
            up.preprocessing.site_intercepts(problem, rows, here.w) for rows in (data, apart(data))
        )
        np.testing.assert_array_equal(own.values, others.values)


def test_moments():
    data = federated("squared")
    here, there = up.preprocessing.moments(data), up.preprocessing.moments(apart(data))
    np.testing.assert_array_equal(here.mean, there.mean)
    np.testing.assert_array_equal(here.variance, there.variance)
    assert here.ledger == there.ledger


@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_cross_validation_with_site_intercepts(kind):
    """A site of one row is asked too: what its prediction needs goes with the question."""
    data = federated(kind, n=121, p=5, sites=5)
    X, names = data.X, np.repeat(data.ids, data.sizes)
    names[-1] = 99
    data = up.FederatedData.from_arrays(X, data.y, names)
    problem = up.Problem(LOSSES[kind], up.L1(0.05), intercept="sites")
    here, there = (
        up.cross_validate(problem, rows, folds=3, n_lambdas=4, min_rows=0) for rows in (data, apart(data))
    )
    np.testing.assert_array_equal(here.losses, there.losses)
    assert here.ledger == there.ledger
