"""The debiased lasso against the same formulas on pooled rows, and against classical intervals."""

import re

import numpy as np
import pytest
from scipy import sparse, stats

import unpooled as up
from tests.inference import pooled
from unpooled.inference import debiased_lasso

LAM = {"squared": 0.06, "logistic": 0.03}


@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_against_the_formulas_on_pooled_rows(kind):
    data, _ = pooled.federation(kind, 1, K=5, n=60, p=25)
    problem = pooled.problem(kind, LAM[kind])
    fit = up.solve(problem, data, tol=1e-12)
    assert 0 < np.count_nonzero(fit.w) < 25
    literal = pooled.squared if kind == "squared" else pooled.logistic
    b, model, robust = literal(data.X, data.y, fit.w, 0.1 * np.sqrt(2 * np.log(25) / 300))
    for covariance, se in (("model", model), ("sandwich", robust)):
        own = debiased_lasso(problem, data, fit, covariance=covariance)
        np.testing.assert_allclose(own.estimate, b, atol=1e-8)
        np.testing.assert_allclose(own.standard_error, se, rtol=1e-7)
        np.testing.assert_array_equal(own.coef, fit.w)
    without = debiased_lasso(problem, data, tol=1e-12)
    np.testing.assert_allclose(without.estimate, b, atol=1e-8)


def test_without_an_intercept():
    data, _ = pooled.federation("squared", 2, K=4, n=50, p=8)
    problem = pooled.problem("squared", 0.05, intercept=False)
    fit = up.solve(problem, data, tol=1e-12)
    own = debiased_lasso(problem, data, fit, lam_node=0.1)
    theta = pooled.nodewise(data.X, 0.1)
    r = data.y - data.X @ fit.w
    np.testing.assert_allclose(own.estimate, fit.w + theta @ data.X.T @ r / 200, atol=1e-8)
    sigma = np.sqrt(r @ r / (200 - np.count_nonzero(fit.w)))
    assert own.sigma == pytest.approx(sigma)
    expected = sigma * np.sqrt(np.diag(theta @ data.X.T @ data.X @ theta.T)) / 200
    np.testing.assert_allclose(own.standard_error, expected, rtol=1e-7)


@pytest.mark.parametrize("penalty", [up.L1(1e-9), up.Zero(), up.ElasticNet(1e-9, 0.5)])
def test_least_squares_is_the_limit(penalty):
    data, _ = pooled.federation("squared", 3, K=4, n=60, p=6)
    own = debiased_lasso(up.Problem(up.Squared(), penalty, True), data, lam_node=0, level=0.9)
    A = np.column_stack([data.X, np.ones(240)])
    solution, rss, *_ = np.linalg.lstsq(A, data.y)
    se = np.sqrt(rss[0] / (240 - 7) * np.diag(np.linalg.inv(A.T @ A)))[:6]
    t = stats.t(240 - 7)
    np.testing.assert_allclose(own.estimate, solution[:6], atol=1e-6)
    np.testing.assert_allclose(own.standard_error, se, rtol=1e-6)
    half = t.ppf(0.95) * se
    np.testing.assert_allclose(
        own.interval(), np.stack([solution[:6] - half, solution[:6] + half], axis=1), atol=1e-6
    )
    np.testing.assert_allclose(own.p_value, 2 * t.sf(np.abs(solution[:6] / se)), rtol=1e-5)


def test_logistic_wald_intervals_are_the_limit():
    data, _ = pooled.federation("logistic", 4, K=4, n=100, p=5)
    own = debiased_lasso(pooled.problem("logistic", 1e-9), data, lam_node=0, base="support")
    A = np.column_stack([data.X, np.ones(400)])
    w = pooled.maximum_likelihood(A, data.y)
    m = pooled.sigmoid(A @ w)
    se = np.sqrt(np.diag(np.linalg.inv((A.T * (m * (1 - m))) @ A)))[:5]
    np.testing.assert_allclose(own.estimate, w[:5], atol=1e-6)
    np.testing.assert_allclose(own.standard_error, se, rtol=1e-6)
    np.testing.assert_allclose(own.interval(0.9)[:, 1], w[:5] + stats.norm.ppf(0.95) * se, atol=1e-6)
    np.testing.assert_allclose(own.p_value, 2 * stats.norm.sf(np.abs(w[:5] / se)), rtol=1e-4)


@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_how_rows_are_split_does_not_matter(kind):
    data, _ = pooled.federation(kind, 5, K=4, n=75, p=30)
    rng = np.random.default_rng(0)
    results = []
    for site in (np.zeros(300, int), np.arange(300) % 3, rng.choice(4, 300, p=[0.1, 0.2, 0.3, 0.4])):
        split = up.FederatedData.from_arrays(data.X, data.y, site)
        results.append(debiased_lasso(pooled.problem(kind, LAM[kind]), split, tol=1e-10))
    for other in results[1:]:
        np.testing.assert_allclose(other.estimate, results[0].estimate, atol=1e-10)
        np.testing.assert_allclose(other.standard_error, results[0].standard_error, atol=1e-10)


def test_rounds_and_what_left_the_sites():
    data, _ = pooled.federation("squared", 6, K=3, n=50, p=10)
    problem = pooled.problem("squared", 0.1)
    own = debiased_lasso(problem, data)
    fit = up.solve(problem, data)
    assert own.ledger == fit.ledger  # one round does for the fit and for all intervals
    assert own.rounds == 1
    after = debiased_lasso(problem, data, fit)
    assert (after.rounds, after.ledger.bytes_up, after.ledger.kinds) == (0, 0, ())
    np.testing.assert_allclose(after.estimate, own.estimate, atol=1e-12)
    other = up.solve(problem, data, solver="fista", tol=1e-12)
    assert debiased_lasso(problem, data, other).rounds == 1
    robust = debiased_lasso(problem, data, fit, covariance="sandwich")
    assert robust.rounds == 1
    assert robust.ledger.floats_up == 3 * (1 + 2 + 1 + 11 + 2 * 66)
    assert {"gradient", "hessian", "squares"} <= set(robust.ledger.kinds)


def test_logistic_rounds_are_those_of_the_fit_the_refit_and_one_more():
    data, _ = pooled.federation("logistic", 6, K=3, n=100, p=10)
    problem = pooled.problem("logistic", 0.02)
    fit = up.solve(problem, data)
    assert debiased_lasso(problem, data, fit, base="fit").rounds == 1
    support = debiased_lasso(problem, data, fit, base="support")
    assert 2 < support.rounds <= 7
    own = debiased_lasso(problem, data, fit)
    assert support.rounds < own.rounds <= 11
    assert debiased_lasso(problem, data).rounds == fit.rounds + own.rounds


def test_columns_by_number_and_name():
    data, _ = pooled.federation("squared", 7, K=3, n=50, p=6)
    named = up.FederatedData.from_arrays(data.X, data.y, np.repeat(range(3), 50), feature_names=[*"abcdef"])
    problem = pooled.problem("squared", 0.1)
    everything = debiased_lasso(problem, named)
    few = debiased_lasso(problem, named, columns=["e", "a", -1])
    assert few.names == ("e", "a", "f")
    np.testing.assert_array_equal(few.columns, [4, 0, 5])
    np.testing.assert_array_equal(few.estimate, everything.estimate[[4, 0, 5]])
    np.testing.assert_array_equal(few.standard_error, everything.standard_error[[4, 0, 5]])
    assert debiased_lasso(problem, named, columns="b").names == ("b",)


def test_sparse_rows_far_means_and_units():
    data, _ = pooled.federation("squared", 8, K=3, n=60, p=5)
    site, units = np.repeat(range(3), 60), np.array([1.0, 1e3, 1e-3, 1.0, 1.0])
    problem = up.Problem(up.Squared(), up.Zero(), True)
    one, *others = (
        debiased_lasso(problem, up.FederatedData.from_arrays(X, data.y, site), lam_node=0.05, tol=1e-6)
        for X in (data.X, sparse.csr_array(data.X), data.X + 1e6, data.X * units)
    )
    for other, unit in zip(others, (1.0, 1.0, units), strict=True):
        np.testing.assert_allclose(other.estimate * unit, one.estimate, atol=1e-5)
        np.testing.assert_allclose(other.standard_error * unit, one.standard_error, rtol=1e-5)
    assert [other.rounds for other in others] == [1, 2, 1]


def test_a_constant_column_has_no_estimate_and_changes_no_other():
    data, _ = pooled.federation("squared", 9, K=3, n=60, p=5)
    X = np.insert(data.X, 2, 4.0, axis=1)
    problem = pooled.problem("squared", 0.05)
    plain = debiased_lasso(problem, data, lam_node=0.03)
    own = debiased_lasso(
        problem, up.FederatedData.from_arrays(X, data.y, np.repeat(range(3), 60)), lam_node=0.03
    )
    rest = [0, 1, 3, 4, 5]
    assert np.isnan([own.estimate[2], own.standard_error[2], own.p_value[2], own.adjusted[2]]).all()
    np.testing.assert_allclose(own.estimate[rest], plain.estimate, atol=1e-10)
    np.testing.assert_allclose(own.adjusted[rest], plain.adjusted, rtol=1e-8)
    assert 2 not in own.selected(0.99)
    assert any("x2 is constant and has no estimate" in note for note in own.notes)


def test_summary_frame_and_selection():
    data, _ = pooled.federation("squared", 10, K=3, n=100, p=30)
    own = debiased_lasso(pooled.problem("squared", 0.05), data)
    frame = own.to_frame()
    assert list(frame.index[:2]) == ["x0", "x1"]
    np.testing.assert_array_equal(frame["high"], own.interval()[:, 1])
    adjusted = stats.false_discovery_control(own.p_value)
    np.testing.assert_allclose(own.adjusted, adjusted)
    np.testing.assert_array_equal(own.selected(0.05), np.flatnonzero(adjusted <= 0.05))
    assert {0, 1} <= set(own.selected())
    lines = own.summary(most=5).splitlines()
    assert lines[0].split() == ["fit", "estimate", "se", "95", "%", "from", "to", "p", "p", "(BH)"]
    assert lines[1].split()[0] in ("x0", "x1", "x5", "x6")
    assert "and 25 more" in lines[6]
    assert lines[-1].startswith("1 round, ")
    assert "30 coefficients" in repr(own)
    known = debiased_lasso(pooled.problem("squared", 0.05), data, sigma=2.0)
    np.testing.assert_allclose(known.standard_error, own.standard_error * 2.0 / own.sigma)


@pytest.mark.parametrize(("spread", "expected"), [(0.0, 2), (0.1, 2), (0.5, 0)])
def test_columns_that_others_explain_are_noted(spread, expected):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 6))
    y = X[:, 0] - 2 * X[:, 1] + rng.standard_normal(300)
    copied = np.column_stack([X, X[:, 0] + spread * rng.standard_normal(300)])
    data = up.FederatedData.from_arrays(copied, y, np.arange(300) % 3)
    problem = up.Problem(up.Squared(), up.L1(0.1), intercept=True)
    found = debiased_lasso(problem, data)
    notes = [note for note in found.notes if "collinear" in note]
    assert [note.split(" are almost collinear")[0] for note in notes] == ["x0 and x6"] * (expected > 0)
    for note in notes:
        assert "almost collinear with the other columns" in note
        assert ("set lam_node=0" in note) == (spread > 0.0)  # 300 rows, 7 columns; a copy has no inverse
    some = debiased_lasso(problem, data, columns=[1, 6])
    assert any(note.startswith("x6 is almost collinear") for note in some.notes) == (expected > 0)
    few = up.FederatedData.from_arrays(copied[:60], y[:60], np.arange(60) % 3)
    for note in debiased_lasso(problem, few, columns=[6]).notes:
        assert "lam_node" not in note
    if spread:
        exact = debiased_lasso(problem, data, lam_node=0.0)
        assert not any("collinear" in note for note in exact.notes)
        assert exact.standard_error[6] > found.standard_error[6]


def test_one_remedy_where_nodewise_regressions_do_not_converge():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 6))
    y = X[:, 0] + rng.standard_normal(300)
    X = np.column_stack([X, X[:, 0] + 1e-3 * rng.standard_normal(300)])
    problem = up.Problem(up.Squared(), up.L1(0.1), intercept=True)
    data = up.FederatedData.from_arrays(X, y, np.arange(300) % 3)
    [note] = debiased_lasso(problem, data, lam_node=1e-6).notes
    assert re.search(
        r"variance \(\d nodewise regressions did not converge\): the intervals are too short", note
    )
    assert note.endswith("set lam_node=0, which adds no bias (there are many more rows than columns)")
    assert np.isfinite(debiased_lasso(problem, data, lam_node=0.0).standard_error).all()
    others = [debiased_lasso(problem, data, columns=[j], lam_node=1e-6).notes for j in range(1, 6)]
    for [note] in filter(None, others):  # their own variance is left
        assert note.startswith("1 nodewise regression did not converge, as happens where columns are almost")
        assert note.endswith("set lam_node=0, which adds no bias (there are many more rows than columns)")
    assert any(others)
    few = up.FederatedData.from_arrays(X[:60], y[:60], np.arange(60) % 3)
    [note] = debiased_lasso(problem, few, lam_node=1e-6).notes
    assert note.endswith("Drop columns")
    for [note] in filter(
        None, (debiased_lasso(problem, few, columns=[j], lam_node=1e-6).notes for j in range(1, 6))
    ):
        assert note.endswith("collinear: drop columns, or raise lam_node")
