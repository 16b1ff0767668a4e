"""What inference does not accept, and what it says then."""

import numpy as np
import pytest

import unpooled as up
from tests.inference import pooled
from unpooled.inference import debiased_lasso, heterogeneity


@pytest.fixture(scope="module")
def data():
    return pooled.federation("squared", 0, K=3, n=30, p=4)[0]


PROBLEM = pooled.problem("squared", 0.1)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"level": 1.0}, "level must lie between 0 and 1"),
        ({"lam_node": -0.1}, "lam_node must be a number ≥ 0"),
        ({"covariance": "robust"}, "'model' or 'sandwich'"),
        ({"base": "lasso"}, "'significant', 'support' or 'fit'"),
        ({"sigma": 0}, "sigma must be a positive number"),
        ({"columns": [4]}, "numbers below 4"),
        ({"columns": []}, "at least one feature"),
        ({"columns": [1, 1]}, "none twice"),
        ({"columns": ["x9"]}, "no feature 'x9'; closest"),
        ({"min_rows": -1}, "min_rows"),
        ({"tol": 0}, "tol"),
    ],
)
def test_options(data, options, match):
    with pytest.raises(ValueError, match=match):
        debiased_lasso(PROBLEM, data, **options)


@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_few_rows_and_rare_values(kind):
    data, _ = pooled.federation(kind, 0, K=3, n=30, p=4)
    problem = pooled.problem(kind, 0.05)
    with pytest.raises(ValueError, match="3 of 3 clients have fewer than 31 rows"):
        debiased_lasso(problem, data, min_rows=31)
    X = data.X.copy()
    X[:, 2] = 0.0
    X[:3, 2] = 1.0
    rare = up.FederatedData.from_arrays(X, data.y, np.repeat(range(3), 30))
    with pytest.raises(ValueError, match="1 of 3 clients has a column in which fewer than 10 rows stand out"):
        debiased_lasso(problem, rare)
    gradients = up.solve(problem, rare, solver="fista", tol=1e-6)
    with pytest.raises(
        ValueError, match="debiased_lasso needs Gram matrices or Hessians, which were refused"
    ):
        debiased_lasso(problem, rare, gradients)


def test_models(data):
    for loss in (up.Huber(), up.Poisson()):
        with pytest.raises(ValueError, match="supports Squared and Logistic"):
            debiased_lasso(up.Problem(loss, up.L1(0.1)), positive(data))
    matrix = up.FederatedData.from_arrays(data.X.reshape(90, 2, 2), data.y, np.repeat(range(3), 30))
    with pytest.raises(ValueError, match="not a matrix"):
        debiased_lasso(up.Problem(up.Squared(), up.Nuclear(0.1)), matrix)


def positive(data):
    return up.FederatedData.from_arrays(data.X, np.abs(np.round(data.y)), np.repeat(range(3), 30))


def test_rows_that_count_differently(data):
    site = np.repeat(range(3), 30)
    weighted = up.FederatedData.from_arrays(data.X, data.y, site, sample_weight=np.arange(1, 91))
    with pytest.raises(ValueError, match="sample_weight makes them differ"):
        debiased_lasso(PROBLEM, weighted)
    with pytest.raises(ValueError, match="sample_weight makes them differ"):
        heterogeneity(PROBLEM, weighted, up.solve(PROBLEM, weighted))
    with pytest.raises(ValueError, match="the clients' weights makes them differ"):
        debiased_lasso(PROBLEM, data.with_weights([1, 2, 3]))
    same = up.FederatedData.from_arrays(data.X, data.y, site, sample_weight=np.full(90, 7.0))
    plain = debiased_lasso(PROBLEM, data)
    np.testing.assert_allclose(debiased_lasso(PROBLEM, same).interval(), plain.interval(), rtol=1e-12)


def test_a_fit_of_something_else(data):
    with pytest.raises(TypeError, match="fit must be the result of solve"):
        debiased_lasso(PROBLEM, data, np.zeros(4))
    with pytest.raises(ValueError, match="the loss and the intercept must be the same"):
        debiased_lasso(PROBLEM, data, up.solve(pooled.problem("squared", 0.1, intercept=False), data))
    with pytest.raises(ValueError, match="saw 60 rows, but the data has 90"):
        debiased_lasso(PROBLEM, data, up.solve(PROBLEM, data.subset([0, 1])))
    other, _ = pooled.federation("squared", 0, K=3, n=30, p=5)
    with pytest.raises(ValueError, match="coefficients of shape"):
        debiased_lasso(PROBLEM, data, up.solve(PROBLEM, other))


def test_nothing_left_for_the_noise():
    data, _ = pooled.federation("squared", 0, K=2, n=10, p=40)
    with pytest.raises(ValueError, match="leaves no degrees of freedom"):
        debiased_lasso(pooled.problem("squared", 1e-5), data)
    assert debiased_lasso(pooled.problem("squared", 1e-5), data, sigma=1.0).sigma == 1.0


def test_separated_classes():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 3))
    data = up.FederatedData.from_arrays(X, (X[:, 0] > 0).astype(float), np.repeat(range(3), 30))
    problem = pooled.problem("logistic", 0.02)
    with pytest.raises(ValueError, match="may separate the classes"):
        debiased_lasso(problem, data)
    assert np.isfinite(debiased_lasso(problem, data, base="fit").standard_error).all()
