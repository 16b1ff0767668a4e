"""Whole runs: same bits, other seeds, diverging, what is recorded, bad input."""

import numpy as np
import pytest
import scipy.sparse

import unpooled as up
from tests.runs import ALGORITHMS, FAST, NAMES, PROBLEM, go, same_bits


@pytest.fixture(scope="module")
def data(small):
    return small


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=NAMES)
@pytest.mark.parametrize("dtype", [None, "float32"])
def test_same_seed_same_bits_on_any_number_of_threads(data, algorithm, dtype):
    one, two = (go(algorithm, data, dtype=dtype, engine=up.engines.Local(threads=t)) for t in (1, 2))
    same_bits(one, two)
    assert not np.array_equal(one.w, go(algorithm, data, dtype=dtype, seed=2).w)


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=NAMES)
def test_without_sampling_the_seed_does_not_matter(data, algorithm):
    a, b = (go(algorithm, data, cohort=None, batch_size=None, seed=seed) for seed in (1, 99))
    same_bits(a, b)


@pytest.mark.parametrize(
    "algorithm",
    [
        up.FastFedDA(mu=0.0, gamma=0.01, local_steps=4, schedule="uniform"),
        up.FedAvg(step=50.0, local_steps=10),
        up.Scaffold(step=50.0, local_steps=10),
        up.FedMiD(step=50.0, local_steps=10),
    ],
    ids=lambda algorithm: type(algorithm).__name__,
)
def test_divergence_is_a_status_never_a_nan(data, algorithm):
    run = go(algorithm, data, rounds=300, cohort=None, batch_size=None)
    assert run.status == "diverged"
    assert "was not finite in round" in run.message or "objective was" in run.message
    assert np.isfinite(run.w).all()
    assert np.isfinite(run.history["objective"]).all()
    assert run.ledger.rounds < 300


def test_divergence_names_the_client():
    """One client has huge rows; the guard names it, not another."""
    rng = np.random.default_rng(0)
    clients = {name: (rng.standard_normal((20, 5)), rng.standard_normal(20)) for name in ("a", "b", "c")}
    clients["b"] = (1e60 * clients["b"][0], clients["b"][1])
    run = go(up.FedAvg(step=0.1, local_steps=2), up.FederatedData.from_clients(clients), cohort=None)
    assert run.status == "diverged"
    assert run.message == "The upload of client 'b' was not finite in round 1."
    assert np.array_equal(run.w, np.zeros(5))


def test_poisson_overflow_is_divergence():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    counts = up.FederatedData.from_arrays(X, rng.poisson(2.0, 40), np.arange(40) % 4)
    run = up.simulate(
        up.FedAvg(step=30.0), up.Problem(up.Poisson(), up.Zero()), counts, rounds=50, w0=np.full(3, 2.0)
    )
    assert run.status == "diverged"
    assert np.isfinite(run.w).all()


def test_numpy_integers_are_integers(data, tmp_path):
    run = go(FAST, data, rounds=np.int64(3), seed=np.int64(3), cohort=np.int32(4), batch_size=np.int16(5))
    assert up.load(run.save(tmp_path / "n.run")).seed == 3


def test_an_infinite_objective_at_the_end_is_divergence():
    counts = up.FederatedData.from_arrays([[1.0], [1.0], [2.0]], [3.0, 5.0, 900.0], [0, 0, 1])
    problem = up.Problem(up.Poisson(), up.Zero())
    run = up.simulate(up.FedAvg(step=1.0, local_steps=1), problem, counts, rounds=1)
    assert run.status == "diverged"
    assert run.w == 0.0


def test_a_ball_is_kept_or_refused(data):
    problem = up.Problem(up.Squared(), up.L1(0.1), ball=0.3)
    for algorithm in (up.FedAvg(step=0.01), up.Scaffold(step=0.01)):
        with pytest.raises(ValueError, match="does not project on a ball"):
            go(algorithm, data, problem=problem)
    for algorithm in (FAST, up.FedMiD(step=0.01), up.FedDA(step=0.01)):
        assert np.linalg.norm(go(algorithm, data, problem=problem).w) <= 0.3 * (1 + 1e-12)


def test_a_start_without_a_finite_objective_is_divergence():
    counts = up.FederatedData.from_clients([(np.ones((3, 1)), [1.0, 2.0, 3.0])])
    problem = up.Problem(up.Poisson(), up.Zero())
    run = up.simulate(up.FedAvg(step=0.1), problem, counts, rounds=5, w0=[1e4])
    assert run.status == "diverged"
    assert run.message == "The objective is inf at the start."
    assert run.ledger.rounds == len(run.history["objective"]) == 0
    assert "diverged after 0 rounds" in repr(run)


def test_history_and_ledger(data):
    run = go(FAST, data, rounds=10, every=4, metrics={"l2": up.metrics.l2_error(data.truth)})
    assert run.history["round"].tolist() == [0, 4, 8, 10]
    assert run.history["l2"][0] == np.linalg.norm(data.truth)
    assert run.history["l2"][-1] == np.linalg.norm(run.w - data.truth)
    assert run.history["objective"][-1] == PROBLEM.objective(run.w, data)
    assert run.status == "completed"
    ledger = run.ledger
    assert (ledger.rounds, ledger.client_updates, ledger.floats_up) == (10, 50, 50 * 40)
    assert (ledger.floats_down, ledger.bytes_up, ledger.bytes_down) == (2000, 16000, 16000)
    single = go(FAST, data, rounds=10, dtype="float32").ledger
    assert (single.floats_up, single.bytes_up) == (2000, 8000)
    scaffold = go(up.Scaffold(step=0.01), data, rounds=10).ledger
    assert (scaffold.floats_up, scaffold.floats_down) == (4000, 4000)
    radius = up.CFedDA(mu=0.1, gamma=20.0, radius=3.0)
    assert go(radius, data, rounds=10).ledger.floats_down == 4000


def test_csr_equals_dense(data):
    X = data.X * (np.abs(data.X) > 1.0)
    ids = np.repeat(data.ids, data.sizes)
    dense, csr = (
        up.FederatedData.from_arrays(features, data.y, ids) for features in (X, scipy.sparse.csr_array(X))
    )
    for problem in (PROBLEM, up.Problem(up.Squared(), up.L1(0.1), intercept=True)):
        a, b = (up.simulate(FAST, problem, d, rounds=8, cohort=5, batch_size=7, seed=1) for d in (dense, csr))
        np.testing.assert_allclose(a.w, b.w, rtol=0, atol=1e-12)
        np.testing.assert_allclose(a.history["objective"], b.history["objective"], rtol=1e-12)


def test_sample_weights_are_repeated_rows(data):
    """Full gradients: weight 3 on a row is the row three times, with n_k-proportional client weights."""
    rng = np.random.default_rng(4)
    repeats = rng.integers(1, 4, data.n_rows)
    ids = np.repeat(data.ids, data.sizes)
    weighted = up.FederatedData.from_arrays(data.X, data.y, ids, sample_weight=repeats)
    repeated = up.FederatedData.from_arrays(
        np.repeat(data.X, repeats, axis=0), np.repeat(data.y, repeats), np.repeat(ids, repeats)
    )
    a, b = (go(FAST, d, cohort=None, batch_size=None) for d in (weighted, repeated))
    np.testing.assert_allclose(a.w, b.w, rtol=0, atol=1e-13)


def test_weighting_of_a_cohort():
    """Renormalised weights of two of four uneven clients sum to one; unbiased ones to K/S Σ π_k."""
    data = up.FederatedData.from_clients([(np.ones((n, 1)), np.full(n, float(n))) for n in (1, 2, 3, 4)])
    problem = up.Problem(up.Squared(), up.Zero())
    from unpooled.kernels.draws import cohort

    chosen = cohort(5, 0, 4, 2)
    pi, y = np.array([0.1, 0.2, 0.3, 0.4])[chosen], np.array([1.0, 2.0, 3.0, 4.0])[chosen]
    expected = {"renormalised": pi / pi.sum() @ y, "unbiased": 2 * pi @ y}
    for weighting, value in expected.items():
        run = up.simulate(
            up.FedAvg(step=1.0, local_steps=1), problem, data, rounds=1, cohort=2, seed=5, weighting=weighting
        )
        assert run.w[0] == pytest.approx(value, rel=1e-14)


def test_large_cohorts_go_through_in_parts_with_the_same_bits(data, monkeypatch):
    whole = go(FAST, data, cohort=None)
    monkeypatch.setattr("unpooled.engines.local.engine.UPLOAD_BYTES", 1)
    same_bits(whole, go(FAST, data, cohort=None))


def test_float32_data_with_float64_states_stays_close(data):
    """Float32 data and float64 duals: as good as float64 up to the rounding of the gradients."""
    reference = go(FAST, data, rounds=400).w
    mixed, single = (
        go(FAST, data.astype("float32"), rounds=400).w,
        go(FAST, data, rounds=400, dtype="float32").w,
    )
    scale = np.abs(reference).max()
    assert np.abs(mixed - reference).max() < 2e-6 * scale
    assert np.abs(single - reference).max() < 1e-3 * scale
    assert np.abs(mixed - reference).max() < np.abs(single - reference).max()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"rounds": 0}, ValueError, r"rounds must be a whole number ≥ 1, got 0"),
        ({"rounds": None}, ValueError, r"rounds is missing"),
        ({"rounds": 2.5}, ValueError, r"rounds must be a whole number"),
        ({"cohort": 13}, ValueError, r"cohort=13, but the data has 12 clients"),
        ({"cohort": 0}, ValueError, r"cohort must be a whole number ≥ 1"),
        ({"batch_size": 0}, ValueError, r"batch_size must be"),
        ({"seed": -1}, ValueError, r"seed must be a whole number ≥ 0"),
        ({"seed": 2**64}, ValueError, r"seed must be below 2\*\*64"),
        ({"every": 0}, ValueError, r"every must be"),
        ({"weighting": "sum"}, ValueError, r"weighting must be one of renormalised, unbiased, got 'sum'"),
        (
            {"w0": np.zeros(3)},
            ValueError,
            r"w0 has shape \(3,\), but .* coefficients have \(40,\)",
        ),
        ({"w0": np.full(40, np.nan)}, ValueError, r"w0 has 40 entries that are NaN"),
        ({"intercept0": 1.0}, ValueError, r"the problem has no intercept: use Problem\(…, intercept=True\)"),
        ({"metrics": {"round": len}}, ValueError, r"metric 'round' must be a function under a name other"),
        ({"metrics": {"a": 3}}, ValueError, r"metric 'a' must be a function"),
        ({"resume": "nowhere.run"}, FileNotFoundError, r"there is no run at nowhere.run"),
    ],
)
def test_bad_options(data, options, error, message):
    with pytest.raises(error, match=message):
        go(FAST, data, **options)


def test_bad_parts(data):
    with pytest.raises(TypeError, match=r"got <class .*did you mean FastFedDA\(…\)\?"):
        up.simulate(up.FastFedDA, PROBLEM, data, rounds=1)
    with pytest.raises(TypeError, match=r"problem must be a Problem\(loss, penalty\), got Squared\(\)"):
        up.simulate(FAST, up.Squared(), data, rounds=1)
    with pytest.raises(TypeError, match=r"engine must be one of unpooled.engines"):
        go(FAST, data, engine="local")
    with pytest.raises(TypeError) as caught:
        go(FAST, data, metrics={"pair": lambda w: w[:2]})
    assert caught.value.__notes__ == ["The metric 'pair' is called with w and must return a number."]
    with pytest.raises(TypeError, match=r"metrics must map names to functions, got list"):
        go(FAST, data, metrics=[len])
    with pytest.raises(FileNotFoundError, match=r"checkpoint is to go into .*nowhere, which is not a folder"):
        go(FAST, data, checkpoint="nowhere/a.run")
    with pytest.raises(IsADirectoryError, match=r"checkpoint is to be the file \., which is a folder"):
        go(FAST, data, checkpoint=".")
    with pytest.raises(TypeError, match=r"data must be a FederatedData .* got tuple"):
        up.simulate(FAST, PROBLEM, (data.X, data.y), rounds=1)
    with pytest.raises(
        TypeError, match=r"loss must be an object with value and gradient, got .*did you mean"
    ):
        up.Problem(up.Squared, up.L1(0.1))
    with pytest.raises(TypeError, match=r"penalty must be an object with value and prox, got 0.1 without"):
        up.Problem(up.Squared(), 0.1)
    with pytest.raises(ValueError, match=r"ball must be positive"):
        up.Problem(up.Squared(), up.L1(0.1), ball=0)
    with pytest.raises(ValueError, match=r"threads must be a whole number of at least 1"):
        up.engines.Local(threads=0)


def test_progress_bar_goes_to_stderr_only_where_asked(data, capsys):
    go(FAST, data, progress=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "FastFedDA" in captured.err
    assert "round 12/12" in captured.err
    assert "objective" in captured.err
    go(FAST, data)
    go(FAST, data, progress=False)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""
