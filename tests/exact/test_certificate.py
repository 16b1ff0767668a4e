"""The reported gap is never below the true one, and vanishes at the optimum."""

import numpy as np
import pytest

import unpooled as up
from tests.exact.federations import LOSSES, federated
from unpooled.exact.certificate import certify
from unpooled.exact.clients import Question
from unpooled.exact.shrinkage import shrinkage

PENALTIES = [up.L1(0.03), up.ElasticNet(0.05, 0.6), up.GroupL2(0.05, np.arange(6) // 2)]


def certificates(problem, data, points):
    """The certificate of each flat point, from the clients' answers there."""
    bound, solver = problem.bind(data), up.Fista()
    clients = up.engines.Local().open_oracles(data)
    for w in points:
        [total], _ = clients.ask([Question(solver, bound, {"w": w, "features": np.empty(0, int)})])
        yield certify(bound, shrinkage(bound), w, float(total["loss"]), total["gradient"], total, (1.0, 1.0))


CASES = [(kind, penalty, seed) for kind in LOSSES for penalty in range(len(PENALTIES)) for seed in range(7)]


@pytest.mark.parametrize("kind", LOSSES)
def test_random_problems(kind):
    checked = 0
    for _, which, seed in (case for case in CASES if case[0] == kind):
        rng = np.random.default_rng(seed)
        data = federated(kind, n=int(rng.integers(20, 60)), p=6, sites=3, seed=seed)
        problem = up.Problem(LOSSES[kind], PENALTIES[which], intercept=bool(seed % 3))
        fit = up.solve(problem, data, tol=1e-11)
        layout = problem.bind(data).layout
        best = layout.pack(fit.w, fit.intercept)
        sizes = (0.0, 1e-6, 1e-3, 0.1, 1.0)
        points = [best + size * rng.standard_normal(layout.size) for size in sizes]
        for w, certificate in zip(points, certificates(problem, data, points), strict=True):
            true = problem.objective(*_split(layout, w, data)) - fit.certificate.objective
            assert certificate.kind == "duality gap"
            assert certificate.gap >= true - 1e-12
            checked += 1
        assert fit.certificate.gap <= 1e-11 * fit.certificate.scale
    assert checked >= 100


def _split(layout, w, data):
    coefficients, intercept = layout.unpack(w)
    return coefficients, data, intercept


@pytest.mark.parametrize("kind", LOSSES)
def test_the_gap_shrinks_with_the_error(kind):
    """A certificate that is valid but loose would be of no use."""
    data = federated(kind, n=80, p=6)
    problem = up.Problem(LOSSES[kind], up.L1(0.05), True)
    fit = up.solve(problem, data, tol=1e-12)
    best = problem.bind(data).layout.pack(fit.w, fit.intercept)
    step = np.random.default_rng(0).standard_normal(best.size)
    gaps = [c.gap for c in certificates(problem, data, [best + s * step for s in (1e-2, 1e-4, 1e-6)])]
    assert gaps[0] > 10 * gaps[1] > 100 * gaps[2]
    assert gaps[2] < 1e-4


def test_nuclear_gap():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4, 3))
    data = up.FederatedData.from_arrays(X, rng.standard_normal(60), np.arange(60) % 3)
    problem = up.Problem(up.Squared(), up.Nuclear(0.2), True)
    fit = up.solve(problem, data, tol=1e-11)
    layout = problem.bind(data).layout
    points = [layout.pack(fit.w, fit.intercept) + s * rng.standard_normal(13) for s in (0, 1e-4, 0.1, 1)]
    for w, certificate in zip(points, certificates(problem, data, points), strict=True):
        true = problem.objective(*_split(layout, w, data)) - fit.certificate.objective
        assert certificate.gap >= true - 1e-13


def test_a_fit_cut_short_warns_and_is_certified():
    from sklearn.exceptions import ConvergenceWarning

    data = federated("logistic")
    problem = up.Problem(up.Logistic(), up.L1(0.01), True)
    best = up.solve(problem, data, tol=1e-12).certificate.objective
    with pytest.warns(
        ConvergenceWarning, match=r"FISTA stopped after 5 rounds .* above tol=1e-08.*raise max_rounds"
    ):
        fit = up.solve(problem, data, solver="fista", max_rounds=5)
    assert not fit.converged
    assert "NOT reached" in fit.summary()
    assert fit.rounds == 5
    assert fit.certificate.gap >= problem.objective(fit.w, data, fit.intercept) - best > 0


def test_an_unreachable_tolerance_stops():
    from sklearn.exceptions import ConvergenceWarning

    data = federated("logistic", n=100, p=5)
    with pytest.warns(ConvergenceWarning, match="the last rounds made no progress"):
        fit = up.solve(up.Problem(up.Logistic(), up.L1(0.01)), data, tol=1e-19, max_rounds=200)
    assert fit.rounds < 100
    assert fit.certificate.relative < 1e-13
