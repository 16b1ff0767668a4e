"""Influence against fits to the other sites alone."""

import numpy as np
import pytest

import unpooled as up
from tests.inference import pooled
from unpooled.inference import influence


@pytest.mark.parametrize(
    ("kind", "solver", "far"),
    [
        ("squared", "auto", 0.0),
        ("squared", "auto", 1e6),
        ("squared", "fista", 0.0),
        ("logistic", "auto", 0.0),
    ],
)
def test_against_fits_to_the_other_sites(kind, solver, far):
    pool, _ = pooled.federation(kind, 1, K=4, n=50, p=8, shift=1.0)
    data = up.FederatedData.from_arrays(pool.X + far, pool.y, np.repeat([*"abcd"], 50))
    problem = pooled.problem(kind, 0.05)
    own = influence(problem, data, solver=solver, tol=1e-12)
    fit = up.solve(problem, data, tol=1e-12)
    np.testing.assert_allclose(own.coef, fit.w, atol=1e-5)
    for k, name in enumerate(data.ids):
        rest = data.subset([other for other in data.ids if other != name])
        without = up.solve(problem, rest, tol=1e-12)
        np.testing.assert_allclose(own.coefs[k], without.w, atol=1e-5)
        np.testing.assert_allclose(own.change[k], without.w - fit.w, atol=1e-5)
        moved = (data.X - far) @ (without.w - fit.w)
        moved += without.intercept - fit.intercept + far * (without.w - fit.w).sum()
        assert own.prediction[k] == pytest.approx(np.sqrt(np.mean(moved**2)), rel=1e-3)
        np.testing.assert_array_equal(own.entered[k], (without.w != 0) & (fit.w == 0))
        np.testing.assert_array_equal(own.left[k], (without.w == 0) & (fit.w != 0))
    if kind == "squared" and solver == "auto":
        assert own.rounds == (2 if far else 1)


def test_the_site_that_decides():
    """One column matters at one site only: without that site it is not selected."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 5))
    site = np.repeat([*"abcd"], 100)
    y = X[:, 0] + 2.0 * X[:, 3] * (site == "c") + 0.1 * rng.standard_normal(400)
    data = up.FederatedData.from_arrays(X, y, site)
    own = influence(up.Problem(up.Squared(), up.L1(0.2)), data)
    assert own.deciding == ("c",)
    np.testing.assert_array_equal(np.argwhere(own.left), [[2, 3]])
    assert not own.entered.any()
    assert own.intercepts is None
    lines = own.summary().splitlines()
    assert lines[1].split()[0] == "c"
    assert lines[1].split()[3:] == ["x3", "0", "1"]
    assert "1 of them change the support" in repr(own)


def test_softmax_and_refused_gram_matrices():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((90, 3)), np.arange(90) % 3
    X[np.arange(90), y] += 1.0
    data = up.FederatedData.from_arrays(X, y.astype(float), np.repeat(range(3), 30))
    own = influence(up.Problem(up.Softmax(n_classes=3), up.L1(0.02), True), data, tol=1e-10)
    k, moved = 1, np.zeros((90, 3))
    moved = X @ own.change[k] + own.intercepts[k] - own.intercept
    assert own.prediction[k] == pytest.approx(np.sqrt(np.mean(np.sum(moved**2, axis=1))), rel=1e-6)
    few = influence(pooled.problem("squared", 0.1), data, min_rows=31, tol=1e-6)
    assert np.isnan(few.prediction).all()
    assert any("prediction is NaN" in note for note in few.notes)
    with pytest.raises(ValueError, match="only one"):
        influence(pooled.problem("squared", 0.1), data.subset([0]))
