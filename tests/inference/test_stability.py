"""Stability selection against lassos on the same halves of pooled rows."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso

import unpooled as up
from tests.inference import pooled
from unpooled.exact.cross_validation import numbers_of
from unpooled.inference import stability_selection
from unpooled.inference.stability import halves, unimodal_factor


@pytest.mark.parametrize("solver", ["auto", "prox_newton"])
def test_frequencies_against_scikit_learn(solver):
    data, _ = pooled.federation("squared", 1, K=3, n=41, p=15)
    lambdas = np.array([0.5, 0.2, 0.1])
    own = stability_selection(
        pooled.problem("squared", 1.0),
        data,
        n_subsamples=6,
        lambdas=lambdas,
        seed=3,
        solver=solver,
        tol=1e-11,
    )
    counts = np.zeros((3, 15))
    union = 0.0
    for fold in halves(data, 3, 3):
        rows = numbers_of(fold.folds, data) == fold.number
        kept = np.array(
            [
                Lasso(alpha=lam, tol=1e-12, max_iter=10**5).fit(data.X[rows], data.y[rows]).coef_ != 0
                for lam in lambdas
            ]
        )
        counts += kept
        union += kept.any(axis=0).sum()
    np.testing.assert_allclose(own.frequencies, counts / 6)
    assert own.mean_selected == pytest.approx(union / 6)
    assert own.false_positives == pytest.approx((union / 6) ** 2 / (0.2 * 15))
    np.testing.assert_array_equal(own.selected, np.flatnonzero((counts / 6).max(axis=0) >= 0.6 - 1e-9))
    if solver == "auto":
        assert own.rounds == 1
        gram = 15 * 16 // 2
        # the whole and six halves: Gram matrix, three vectors' worth of moments, counts, the rows' weight
        assert own.ledger.floats_up == 3 * 7 * (gram + 15 + 15 + 1 + 1 + 1 + 1 + 2 + 1)


def test_halves_are_complementary_and_depend_on_seed_and_id_only():
    data, _ = pooled.federation("squared", 2, K=3, n=31, p=2)
    folds = halves(data, 4, seed=1)
    assert len(folds) == 8
    for first, second in zip(folds[::2], folds[1::2], strict=True):
        one, two = (numbers_of(each.folds, data) == each.number for each in (first, second))
        assert not (one & two).any()
        for start in (0, 31, 62):
            assert one[start : start + 31].sum() == two[start : start + 31].sum() == 15
    alone = data.subset([1])
    for fold, own in zip(folds, halves(alone, 4, seed=1), strict=True):
        np.testing.assert_array_equal(numbers_of(fold.folds, data)[31:62], numbers_of(own.folds, alone))
    others = [numbers_of(fold.folds, data) for fold in halves(data, 4, seed=2)]
    assert any((numbers_of(a.folds, data) != b).any() for a, b in zip(folds, others, strict=True))


def test_the_grid_ends_where_the_bound_does():
    data, beta = pooled.federation("squared", 3, K=5, n=60, p=60)
    problem = pooled.problem("squared", 1.0)
    own = stability_selection(problem, data, n_subsamples=40, threshold=0.75)
    again = stability_selection(problem, data, n_subsamples=40, threshold=0.75)
    np.testing.assert_array_equal(own.frequencies, again.frequencies)
    whole = stability_selection(problem, data, n_subsamples=40, threshold=0.75, max_false_positives=None)
    assert len(whole.lambdas) == 20
    assert own.false_positives <= 1.0 < whole.false_positives
    assert len(own.lambdas) < 20
    np.testing.assert_array_equal(own.frequencies, whole.frequencies[: len(own.lambdas)])
    assert {0, 1, 5, 6} <= set(own.selected.tolist()) <= set(np.flatnonzero(beta).tolist())
    assert own.false_positives_unimodal < own.false_positives
    assert "stable columns" in own.summary()
    assert "of 60 columns are stable" in repr(own)


def test_logistic_and_refused_halves():
    data, _ = pooled.federation("logistic", 4, K=2, n=60, p=6)
    options = {"n_subsamples": 4, "lambdas": [0.1, 0.03]}
    own = stability_selection(pooled.problem("logistic", 1.0), data, **options)
    for f, fold in enumerate(halves(data, 2, 0)):
        rows = np.flatnonzero(numbers_of(fold.folds, data) == fold.number)
        half = up.FederatedData.from_arrays(data.X[rows], data.y[rows], rows // 60)
        if f == 0:
            first = up.path(pooled.problem("logistic", 1.0), half, lambdas=[0.1, 0.03]).coefs != 0
    np.testing.assert_array_equal((own.frequencies > 0) | ~first, True)
    refused = stability_selection(pooled.problem("squared", 1.0), data, min_rows=61, tol=1e-10, **options)
    sent = stability_selection(pooled.problem("squared", 1.0), data, min_rows=30, **options)
    np.testing.assert_array_equal(refused.frequencies, sent.frequencies)
    assert "gram" not in refused.ledger.kinds
    assert any("2 of 2 clients have fewer than 61 rows" in note for note in refused.notes)


def test_a_group_penalty_selects_groups():
    data, _ = pooled.federation("squared", 5, K=2, n=60, p=6)
    problem = up.Problem(up.Squared(), up.GroupL2(1.0, [0, 0, 1, 1, 2, 2]), True)
    own = stability_selection(problem, data, n_subsamples=4, lambdas=[0.5, 0.1])
    np.testing.assert_array_equal(own.frequencies[:, ::2], own.frequencies[:, 1::2])
    assert own.frequencies[1, 0] == 1.0


def test_unimodal_factor():
    assert unimodal_factor(0.6, 50, 0.05) == pytest.approx(1 / (2 * (2 * 0.6 - 1 - 1 / 100)))
    assert unimodal_factor(0.9, 50, 0.05) == pytest.approx(4 * (1 - 0.9 + 1 / 100) / (1 + 1 / 50))
    # the two forms meet at 3/4
    assert unimodal_factor(0.75, 50, 0.05) == pytest.approx(4 * (0.25 + 0.01) / 1.02, rel=1e-3)
    assert np.isnan(unimodal_factor(0.6, 50, 0.6))


def test_refused():
    data, _ = pooled.federation("squared", 6, K=2, n=20, p=3)
    problem = pooled.problem("squared", 1.0)
    for options, match in [
        ({"n_subsamples": 3}, "must be even"),
        ({"threshold": 0.5}, "above 0.5"),
        ({"max_false_positives": 0}, "positive or None"),
        ({"ratio": 2.0}, "ratio"),
    ]:
        with pytest.raises(ValueError, match=match):
            stability_selection(problem, data, **options)
    lonely = up.FederatedData.from_arrays(data.X[:21], data.y[:21], [0] * 20 + [1])
    with pytest.raises(ValueError, match="client 1 has one row"):
        stability_selection(problem, lonely)
