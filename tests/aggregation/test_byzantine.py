"""A fifth of the clients send their uploads turned around and a hundred times as large."""

import numpy as np
import pytest
from scipy import sparse

import unpooled as up
from tests.aggregation.attackers import Liars
from tests.runs import ALGORITHMS, FAST, go, same_bits
from unpooled.engines.local import engine as local

ROBUST = [up.CoordinateMedian(), up.TrimmedMean(0.2)]
BY_VALUE = up.Scaffold(step=0.01, local_steps=4, control="value")
PROBLEM = up.Problem(up.Squared(), up.L1(0.1))


@pytest.fixture(scope="module")
def data():
    return up.datasets.sparse_regression(seed=4, n_clients=20, n_rows=60, n_features=40, sparsity=8)


def recover(data, algorithm=FAST, **options):
    options = {"rounds": 150, "cohort": None, "batch_size": None, **options}
    run = go(algorithm, data, problem=PROBLEM, **options)
    return run, up.metrics.l2_error(data.truth)(run.w)


def test_the_lasso_is_recovered_where_the_mean_is_lost(data):
    run, clean = recover(data)
    assert run.status == "completed"
    assert clean < 0.5 * np.linalg.norm(data.truth)
    run, lost = recover(data, engine=Liars(liars=4))
    assert run.status == "diverged" or lost > 10 * clean
    for aggregate in ROBUST:
        run, error = recover(data, engine=Liars(liars=4), aggregate=aggregate)
        assert run.status == "completed"
        assert error < 2 * clean, aggregate


@pytest.mark.parametrize("algorithm", [*ALGORITHMS[:-1], BY_VALUE], ids=lambda a: type(a).__name__)
def test_every_algorithm_withstands_it(data, algorithm):
    _, clean = recover(data, algorithm, rounds=60)
    run, error = recover(data, algorithm, rounds=60, engine=Liars(liars=4), aggregate=up.TrimmedMean(0.2))
    assert run.status == "completed"
    assert error < 2 * clean


def test_changes_of_controls_must_be_averaged(data):
    """A median of changes is not the change of a median: the server's control would drift away, for good."""
    with pytest.raises(ValueError, match=r"take Scaffold\(control='value'\)"):
        recover(data, up.Scaffold(step=0.01), aggregate=up.CoordinateMedian())
    with pytest.raises(ValueError, match=r"control must be 'change' or 'value', got 'sum'"):
        up.Scaffold(control="sum")


def test_controls_sent_by_value_are_the_same_with_all_clients(data):
    change, value = (up.Scaffold(step=0.01, local_steps=4, control=way) for way in ("change", "value"))
    options = {"rounds": 30, "cohort": None}
    np.testing.assert_allclose(go(change, data, **options).w, go(value, data, **options).w, atol=1e-13)


def test_controls_sent_by_value_take_away_all_drift(data):
    least = np.linalg.lstsq(data.X, data.y, rcond=None)[0]
    options = {"problem": up.Problem(up.Squared(), up.Zero()), "rounds": 1000, "batch_size": None}
    controlled, plain = (
        np.linalg.norm(go(algorithm, data, cohort=None, **options).w - least)
        for algorithm in (BY_VALUE, up.FedAvg(step=0.01, local_steps=4))
    )
    assert controlled < 1e-5 < 1e-2 < plain


def test_cohorts_withstand_it_while_the_liars_are_few_enough(data):
    _, clean = recover(data, cohort=15, batch_size=20)
    run, error = recover(data, cohort=15, batch_size=20, engine=Liars(liars=4), aggregate=up.TrimmedMean(0.3))
    assert run.status == "completed"
    assert error < 2 * clean


def test_an_upload_that_is_not_finite_is_refused_and_its_client_named(data):
    run, _ = recover(data, engine=Liars(liars=1, factor=np.nan), aggregate=up.CoordinateMedian())
    assert run.status == "diverged"
    assert run.message == f"The upload of client {data.ids[0]!r} was not finite in round 1."


@pytest.mark.parametrize("aggregate", ROBUST, ids=str)
def test_threads_and_resuming_change_no_bit(data, aggregate, monkeypatch):
    scaffold = BY_VALUE
    one, two = (go(scaffold, data, aggregate=aggregate, engine=up.engines.Local(threads=t)) for t in (1, 2))
    same_bits(one, two)
    half = go(scaffold, data, aggregate=aggregate, rounds=6)
    same_bits(one, go(scaffold, data, aggregate=aggregate, resume=half))
    monkeypatch.setattr(local, "UPLOAD_BYTES", 500)  # a median is not a sum of parts
    same_bits(one, go(scaffold, data, aggregate=aggregate))


def test_resume_compares_the_aggregate(data):
    half = go(FAST, data, rounds=5, aggregate=up.TrimmedMean(0.1))
    with pytest.raises(ValueError, match=r"aggregate: 'TrimmedMean\(fraction=0.1\)' then, None now"):
        go(FAST, data, resume=half)
    with pytest.raises(ValueError, match=r"aggregate: .* then, 'TrimmedMean\(fraction=0.2\)' now"):
        go(FAST, data, resume=half, aggregate=up.TrimmedMean(0.2))
    assert go(FAST, data, resume=go(FAST, data, rounds=5), aggregate=up.Mean()).status == "completed"


def test_mean_is_the_default_to_the_bit(data):
    same_bits(go(FAST, data), go(FAST, data, aggregate=up.Mean()))
    with pytest.raises(TypeError, match=r"did you mean CoordinateMedian\(…\)\?"):
        go(FAST, data, aggregate=up.CoordinateMedian)


@pytest.mark.parametrize("aggregate", ROBUST, ids=str)
def test_sparse_rows_give_what_dense_rows_give(aggregate):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 60)) * (rng.random((150, 60)) < 0.08)
    clients = np.sort(rng.integers(0, 12, 150))
    y = X[:, :6].sum(axis=1) + 0.1 * rng.standard_normal(150) + 0.3
    problem = up.Problem(up.Squared(), up.L1(0.02), intercept=True)
    w0 = rng.standard_normal(60)  # coordinates that nobody touches move too
    dense, csr = (
        up.simulate(
            FAST,
            problem,
            up.FederatedData.from_arrays(M, y, clients),
            rounds=12,
            cohort=8,
            batch_size=4,
            w0=w0,
            aggregate=aggregate,
        )
        for M in (X, sparse.csr_array(X))
    )
    np.testing.assert_allclose(csr.w, dense.w, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(csr.intercept, dense.intercept, rtol=1e-11)
    assert csr.ledger.bytes_up < dense.ledger.bytes_up
