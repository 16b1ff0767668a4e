"""Tests of single sites against nested models fitted to pooled rows."""

import numpy as np
import pytest
from scipy import stats

import unpooled as up
from tests.inference import pooled
from unpooled.inference import heterogeneity


def rss(A, y):
    solution, *_ = np.linalg.lstsq(A, y)
    return np.sum((y - A @ solution) ** 2), np.linalg.matrix_rank(A)


@pytest.mark.parametrize("sizes", [(40, 60, 50), (4, 100, 30)])
def test_squared_is_the_exact_f_test(sizes):
    """Own coefficients for one site, or for every site, against the pooled model."""
    pool, _ = pooled.federation("squared", 1, K=1, n=sum(sizes), p=8)
    site = np.repeat(["a", "b", "c"], sizes)
    data = up.FederatedData.from_arrays(pool.X, pool.y, site)
    problem = pooled.problem("squared", 0.1)
    fit = up.solve(problem, data, min_rows=0)
    own = heterogeneity(problem, data, fit, min_rows=0)
    kept = np.flatnonzero(fit.w)
    np.testing.assert_array_equal(own.support, kept)
    A, n = np.column_stack([data.X[:, kept], np.ones(len(site))]), len(site)
    base, rank = rss(A, data.y)
    parts = [A * (site == name)[:, None] for name in "abc"]
    for k, part in enumerate(parts):
        larger, larger_rank = rss(np.hstack([A, part]), data.y)
        df = larger_rank - rank
        F = (base - larger) / df / (larger / (n - larger_rank))
        assert own.df[k] == df
        assert own.statistic[k] == pytest.approx((base - larger) / (base / (n - rank)), rel=1e-8)
        assert own.p_value[k] == pytest.approx(stats.f.sf(F, df, n - larger_rank), rel=1e-7)
    full, full_rank = rss(np.hstack(parts), data.y)
    F = (base - full) / (full_rank - rank) / (full / (n - full_rank))
    assert own.overall[1] == full_rank - rank
    assert own.overall[2] == pytest.approx(stats.f.sf(F, full_rank - rank, n - full_rank), rel=1e-7)
    assert own.rounds == 1
    np.testing.assert_allclose(own.adjusted, stats.false_discovery_control(own.p_value))


def test_a_site_with_fewer_rows_than_columns_tests_as_many_directions_as_it_has_rows():
    pool, _ = pooled.federation("squared", 2, K=1, n=203, p=8)
    site = np.repeat([0, 1, 2], [3, 100, 100])
    data = up.FederatedData.from_arrays(pool.X, pool.y, site)
    problem = pooled.problem("squared", 0.01)
    fit = up.solve(problem, data, min_rows=0)
    own = heterogeneity(problem, data, fit, min_rows=0)
    assert own.df[0] == 3 < len(own.support)
    with pytest.raises(ValueError, match="1 of 3 clients has fewer than 10 rows"):
        heterogeneity(problem, data, fit)


def test_logistic_against_the_formula_on_pooled_rows():
    data, _ = pooled.federation("logistic", 3, K=4, n=80, p=10)
    problem = pooled.problem("logistic", 0.03)
    fit = up.solve(problem, data)
    own = heterogeneity(problem, data, fit)
    kept = np.flatnonzero(fit.w)
    A = np.column_stack([data.X[:, kept], np.ones(320)])
    m = pooled.sigmoid(A @ pooled.maximum_likelihood(A, data.y))
    v = m * (1 - m)
    whole = (A.T * v) @ A
    total = 0.0
    for k in range(4):
        rows = slice(80 * k, 80 * (k + 1))
        S, H = A[rows].T @ (data.y - m)[rows], (A[rows].T * v[rows]) @ A[rows]
        T = S @ np.linalg.solve(H - H @ np.linalg.solve(whole, H), S)
        total += S @ np.linalg.solve(H, S)
        assert own.statistic[k] == pytest.approx(T, rel=1e-4)
        assert own.p_value[k] == pytest.approx(stats.chi2.sf(T, len(kept) + 1), rel=1e-3)
    assert own.overall[0] == pytest.approx(total, rel=1e-4)
    assert own.overall[1] == 3 * (len(kept) + 1)


@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_a_site_that_differs_is_found(kind):
    data, _ = pooled.federation(kind, 4, K=6, n=150, p=20, shift=0.2)
    y, rows = data.y.copy(), slice(300, 450)
    y[rows] = -y[rows] if kind == "squared" else 1 - y[rows]
    sick = up.FederatedData.from_arrays(data.X, y, np.repeat([*"uvwxyz"], 150))
    problem = pooled.problem(kind, 0.05)
    fit = up.solve(problem, sick)
    own = heterogeneity(problem, sick, fit)
    assert own.differing(1e-6) == ("w",)
    assert own.overall[2] < 1e-10
    assert own.summary().splitlines()[1].split()[0] == "w"
    assert own.to_frame()["p_value"].idxmin() == "w"
    assert "1 of 6 sites" in repr(heterogeneity(problem, sick, fit)) or len(own.differing()) > 1


def test_refused():
    data, _ = pooled.federation("squared", 5, K=2, n=40, p=4)
    problem = pooled.problem("squared", 0.1)
    fit = up.solve(problem, data)
    with pytest.raises(ValueError, match="only one"):
        heterogeneity(problem, data.subset([0]), up.solve(problem, data.subset([0])))
    bare = pooled.problem("squared", 100.0, intercept=False)
    with pytest.raises(ValueError, match="nothing to test"):
        heterogeneity(bare, data, up.solve(bare, data))
    with pytest.raises(TypeError, match="the result of solve"):
        heterogeneity(problem, data, fit.w)
