"""λ paths and the choice of λ against scikit-learn on pooled rows."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LassoLarsIC, lasso_path

import unpooled as up
from tests.exact.federations import LOSSES, federated

PENALTIES = [up.L1(1.0), up.ElasticNet(1.0, 0.5), up.GroupL2(1.0, np.arange(20) // 4, "sqrt")]


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("kind", LOSSES)
def test_lambda_max(kind, penalty, intercept):
    data = federated(kind, n=100, p=20, sites=4)
    problem = up.Problem(LOSSES[kind], penalty, intercept)
    largest = up.lambda_max(problem, data)
    at = up.solve(problem.with_lam(largest * (1 + 1e-9)), data, tol=1e-12)
    below = up.solve(problem.with_lam(0.999 * largest), data, tol=1e-12)
    assert not at.w.any()
    assert below.w.any()


def test_a_path_of_least_squares_takes_one_round():
    data = federated("squared")
    path = up.path(up.Problem(up.Squared(), up.L1(1.0)), data, n_lambdas=40)
    _, coefs, _ = lasso_path(data.X, data.y, alphas=path.lambdas, tol=1e-12, max_iter=100_000)
    np.testing.assert_allclose(path.coefs, coefs.T, atol=1e-7)
    assert path.rounds == 1
    assert path.lambdas[0] == pytest.approx(up.lambda_max(path.problem, data), rel=1e-14)
    assert path.lambdas[-1] == pytest.approx(1e-3 * path.lambdas[0])
    assert all(certificate.relative <= 1e-8 for certificate in path.certificates)


@pytest.mark.parametrize("solver", ["prox_newton", "anderson", "fista"])
def test_a_path_is_its_single_solves(solver):
    data = federated("logistic", n=150, p=8)
    problem = up.Problem(up.Logistic(), up.L1(1.0), True)
    options = {"solver": solver, "tol": 1e-10}
    path = up.path(problem, data, n_lambdas=6, ratio=0.05, at_once=3, **options)
    for i, lam in enumerate(path.lambdas):
        fit = up.solve(problem.with_lam(float(lam)), data, **options)
        w, intercept = path.model(i)
        np.testing.assert_allclose(w, fit.w, atol=1e-5)
        assert intercept == pytest.approx(fit.intercept, abs=1e-5)


def test_neighbours_share_rounds():
    data = federated("logistic", n=150, p=8)
    problem = up.Problem(up.Logistic(), up.L1(1.0), True)
    one, many = (up.path(problem, data, n_lambdas=10, at_once=k) for k in (1, 10))
    assert many.rounds < one.rounds / 2
    np.testing.assert_allclose(many.coefs, one.coefs, atol=1e-5)


def test_few_rows_shorten_the_path():
    data = federated("squared", n=30, p=40, sites=3)
    path = up.path(up.Problem(up.Squared(), up.L1(1.0), True), data, n_lambdas=5)
    assert path.lambdas[-1] == pytest.approx(1e-2 * path.lambdas[0])


def test_bic_is_that_of_scikit_learn():
    data = federated("squared")
    path = up.path(up.Problem(up.Squared(), up.L1(1.0), True), data, n_lambdas=50)
    peer = LassoLarsIC("bic").fit(data.X, data.y)
    kept = set(np.flatnonzero(path.coefs[up.select(path, "bic")]))
    assert {0, 1, 2, 3} <= kept == set(np.flatnonzero(peer.coef_))


def test_ebic_takes_no_more_than_bic_and_aic_no_less():
    data = federated("poisson", n=200, p=30)
    path = up.path(up.Problem(up.Poisson(), up.L1(1.0), True), data, n_lambdas=20, ratio=0.02)
    counts = [path.n_nonzero[up.select(path, which)] for which in ("ebic", "bic", "aic")]
    assert counts[0] <= counts[1] <= counts[2]
    plain = up.information(path, "ebic", gamma=0.0)
    np.testing.assert_allclose(plain, up.information(path, "bic"))


def test_refused():
    data, problem = federated("squared", n=60, p=5), up.Problem(up.Squared(), up.L1(1.0))
    with pytest.raises(ValueError, match="n_lambdas must be a whole number"):
        up.path(problem, data, n_lambdas=0)
    with pytest.raises(ValueError, match="ratio must lie between 0 and 1"):
        up.path(problem, data, ratio=2.0)
    with pytest.raises(ValueError, match="lambdas must be positive"):
        up.path(problem, data, lambdas=[1.0, -1.0])
    with pytest.raises(ValueError, match="makes every coefficient zero: give lambdas"):
        up.path(up.Problem(up.Squared(), up.ElasticNet(1.0, 0.0)), data)
    path = up.path(problem, data, n_lambdas=3)
    with pytest.raises(ValueError, match="criterion must be"):
        up.select(path, "cv")
    with pytest.raises(ValueError, match="gamma must lie"):
        up.select(path, "ebic", 2.0)
    huber = up.path(up.Problem(up.Huber(), up.L1(1.0)), data, lambdas=[0.5])
    with pytest.raises(ValueError, match="Huber is not a log-likelihood"):
        up.select(huber)


def test_nearly_collinear_features_along_a_path():
    """Copies with a little noise of their own once made the server's solver go round in circles."""
    rng = np.random.default_rng(2)
    Z = rng.normal(size=(400, 6)) @ rng.normal(size=(6, 6))
    X = np.repeat(Z, 3, axis=1) + np.tile([0.0, 1e-4, 0.05], 6) * rng.normal(size=(400, 18))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = Z @ rng.normal(size=6) + 5.0 * rng.normal(size=400)
    data = up.FederatedData.from_arrays(X, y, np.arange(400) % 8)
    found = up.path(up.Problem(up.Squared(), up.L1(1.0), intercept=True), data, n_lambdas=60)
    assert max(certificate.relative for certificate in found.certificates) < 1e-11


def test_one_warning_for_all_fits_that_stop_early():
    data = federated("huber", n=120, p=8, sites=3)
    problem = up.Problem(up.Huber(0.05), up.L1(1.0), True)
    options = {"n_lambdas": 12, "solver": "fista", "max_rounds": 5, "tol": 1e-10}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = up.cross_validate(problem, data, folds=4, **options)
    [message] = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
    gaps = np.array([[c.relative for c in row] for row in found.fold_certificates])
    count = int((gaps > 1e-10).sum() + (~found.path.converged).sum())
    assert count > 12
    assert f"{count} of 60 fits were done" in message
    assert "raise max_rounds or tol" in message
    worst = max(float(gaps.max()), max(c.relative for c in found.path.certificates))
    assert f"{worst:.2g} of its scale" in message
    with pytest.warns(ConvergenceWarning, match=r"\d+ of 12 fits were done; the worst, at λ = ") as caught:
        path = up.path(problem, data, **options)
    assert len(caught) == 1
    assert path.converged.shape == (12,)
