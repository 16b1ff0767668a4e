"""Private runs: the budget, resuming, what is refused, what is said."""

import builtins

import numpy as np
import pytest
from scipy import sparse

import unpooled as up
from tests.runs import ALGORITHMS, go, same_bits

pytestmark = pytest.mark.filterwarnings("ignore:noise_seed")
ALGORITHM = up.FedDA(step=0.05, local_steps=2)
BY_VALUE = up.Scaffold(step=0.01, local_steps=4, control="value")


def seeded(**options):
    return up.CentralDP(**{"clip": 5.0, "noise_multiplier": 2.0, "delta": 1e-4, "noise_seed": 3, **options})


@pytest.fixture(scope="module")
def data(small):
    return small


@pytest.fixture(scope="module")
def many():
    """400 clients of 20 rows."""
    return up.datasets.sparse_regression(seed=5, n_clients=400, n_rows=20, n_features=20, sparsity=5)


def test_utility_with_many_clients(many):
    """At ε = 8 far better than nothing, worse than without privacy; at ε = 1 worse still. Of four noises."""
    algorithm = up.FastFedDA(mu=0.1, gamma=10.0, local_steps=3, schedule="uniform")
    problem, l2 = up.Problem(up.Squared(), up.L1(0.05)), up.metrics.l2_error(many.truth)

    def error(**options):
        return l2(up.simulate(algorithm, problem, many, rounds=30, **options).w)

    def private(epsilon):
        budget = {"clip": 10.0, "epsilon": epsilon, "delta": 1e-5}
        return np.mean([error(privacy=up.CentralDP(**budget, noise_seed=seed)) for seed in range(4)])

    eight, one, nothing = private(8.0), private(1.0), np.linalg.norm(many.truth)
    assert error() < eight < 0.05 * nothing
    assert eight < one < 0.2 * nothing


@pytest.mark.parametrize("algorithm", [*ALGORITHMS[:-1], BY_VALUE], ids=lambda a: type(a).__name__)
def test_every_algorithm_with_hardly_any_noise_is_the_mean_of_equal_clients(data, algorithm):
    private = seeded(clip=1e9, noise_multiplier=1e-19)
    found = go(algorithm, data, cohort=None, privacy=private)
    np.testing.assert_allclose(found.w, go(algorithm, data, cohort=None).w, rtol=1e-7, atol=1e-9)
    assert found.privacy.clipped == 0


def test_threads_change_no_bit_and_a_seed_repeats(data):
    one, two = (go(ALGORITHM, data, privacy=seeded(), engine=up.engines.Local(threads=t)) for t in (1, 2))
    same_bits(one, two)
    assert one.privacy == two.privacy
    assert not np.array_equal(one.w, go(ALGORITHM, data, privacy=seeded(noise_seed=4)).w)


def test_neither_the_seed_nor_a_saved_run_repeats_noise(data, tmp_path):
    private = up.CentralDP(clip=5.0, noise_multiplier=2.0, delta=1e-4)
    once, again = (go(ALGORITHM, data, cohort=None, batch_size=None, privacy=private) for _ in range(2))
    assert not np.array_equal(once.w, again.w)
    half = go(ALGORITHM, data, privacy=private, rounds=6).save(tmp_path / "half.run")
    rest = [go(ALGORITHM, data, privacy=private, resume=half) for _ in range(2)]
    assert not np.array_equal(rest[0].w, rest[1].w)
    assert rest[0].privacy.epsilon == pytest.approx(go(ALGORITHM, data, privacy=private).privacy.epsilon)


def test_what_was_spent_and_clipped_goes_on(data, tmp_path):
    options = {"privacy": seeded(clip=0.5), "cohort": 5}
    whole = go(ALGORITHM, data, rounds=20, **options)
    half = go(ALGORITHM, data, rounds=10, **options)
    assert 0 < half.privacy.epsilon < whole.privacy.epsilon
    path = half.save(tmp_path / "half.run")
    assert up.load(path).privacy == half.privacy
    rest = go(ALGORITHM, data, rounds=20, resume=path, **options)
    same_bits(whole, rest)
    assert rest.privacy == whole.privacy
    assert rest.notes == whole.notes
    assert whole.privacy.uploads == 100
    with pytest.raises(ValueError, match=r"had other settings: privacy: {.*'clip': 0.5.*then, None now"):
        go(ALGORITHM, data, resume=half)
    with pytest.raises(ValueError, match=r"'clip': 0.5.* then, .*'clip': 0.6.* now"):
        go(ALGORITHM, data, resume=half, privacy=seeded(clip=0.6))
    with pytest.raises(ValueError, match=r"privacy: None then"):
        go(ALGORITHM, data, resume=go(ALGORITHM, data, rounds=3), **options)


def test_the_run_stops_before_the_budget_is_exceeded(data, tmp_path):
    private = seeded(noise_multiplier=8.0, epsilon=4.0)
    run = go(ALGORITHM, data, rounds=500, cohort=None, privacy=private, checkpoint=tmp_path / "run.run")
    assert run.status == up.Status.EXHAUSTED == "exhausted"
    last = run.ledger.rounds
    assert 0 < last < 500
    assert run.privacy.epsilon <= 4.0
    assert run.history["round"][-1] == last
    assert run.message.startswith(
        f"The budget ε = 4 allows {last} of 500 rounds: one more would spend ε = 4."
    )
    assert (
        go(
            ALGORITHM, data, rounds=last + 1, cohort=None, privacy=seeded(noise_multiplier=8.0)
        ).privacy.epsilon
        > 4
    )
    again = go(ALGORITHM, data, rounds=900, cohort=None, privacy=private, resume=tmp_path / "run.run")
    assert again.status == "exhausted"
    assert again.ledger.rounds == last


def test_noise_is_chosen_for_the_planned_rounds_and_kept(data):
    private = seeded(noise_multiplier=None, epsilon=6.0)
    run = go(ALGORITHM, data, rounds=10, cohort=4, privacy=private)
    assert run.status == "completed"
    assert 5.9 < run.privacy.epsilon <= 6.0
    assert run.notes[0].startswith(
        f"noise_multiplier = {run.privacy.noise_multiplier:.4g}: 10 rounds then cost"
    )
    more = go(ALGORITHM, data, rounds=20, cohort=4, privacy=private, resume=run)
    assert more.status == "exhausted"
    assert more.privacy.noise_multiplier == run.privacy.noise_multiplier


def test_the_summary_says_it_all(data):
    run = go(ALGORITHM, data, privacy=up.CentralDP(clip=0.01, noise_multiplier=4.0, epsilon=80.0, delta=1e-3))
    assert run.privacy.clipped == run.privacy.uploads == 60
    said = run.summary()
    assert f"privacy: ε = {run.privacy.epsilon:.4g} of 80 spent at δ = 0.001, for one client replaced" in said
    assert "100% of 60 uploads were clipped: a larger clip" in said
    assert "the history, the counts of clipped uploads and the saved run are computed from the rows" in said
    assert "NOT private" not in said
    assert "NOT private" in go(ALGORITHM, data, privacy=seeded()).summary()


def test_a_known_seed_warns(data):
    with pytest.warns(UserWarning, match="noise that can be repeated can be taken off again"):
        go(ALGORITHM, data, privacy=seeded())


def test_nothing_is_recorded_on_demand(data, tmp_path):
    run = go(ALGORITHM, data, privacy=seeded(history=False), checkpoint=tmp_path / "run.run")
    assert run.status == "completed"
    assert len(run.history["objective"]) == 0
    assert run.privacy.clipped == run.privacy.not_finite == -1
    assert up.load(tmp_path / "run.run").privacy == run.privacy
    assert "clipped" not in " ".join(run.notes[:1])
    np.testing.assert_array_equal(run.w, go(ALGORITHM, data, privacy=seeded()).w)
    with pytest.raises(ValueError, match="no place for metrics"):
        go(ALGORITHM, data, privacy=seeded(history=False), metrics={"n": up.metrics.nonzeros()})


@pytest.mark.parametrize(
    ("algorithm", "names"),
    [
        (up.FastFedDA(), "gamma and mu"),
        (up.FastFedDA(gamma=10.0), "mu"),
        (up.MCFedDA(mu=0.1, lambda0=0.4), "gamma"),
        (up.FastFedDA(mu=0.1, schedule="theory"), "gamma"),
        (up.FedAvg(), "step"),
    ],
)
def test_numbers_that_would_be_measured_are_refused(data, algorithm, names):
    with pytest.raises(ValueError, match=rf"with privacy, give \w+ its {names}: a default would be measured"):
        go(algorithm, data, privacy=seeded())


def test_numbers_that_need_no_rows_are_chosen(data):
    for algorithm in (up.FastFedDA(mu=0.1, gamma=80.0), up.FastFedDA(mu=0.1, a=2000.0, schedule="theory")):
        run = go(algorithm, data, privacy=seeded())
        assert run.status == "completed"
        assert run.ledger.setup_rounds == 0


def test_what_does_not_go_together_is_refused(data):
    with pytest.raises(ValueError, match="accounted for means only"):
        go(ALGORITHM, data, privacy=seeded(), aggregate=up.TrimmedMean(0.1))
    with pytest.raises(ValueError, match=r"take Scaffold\(control='value'\)"):
        go(up.Scaffold(step=0.01), data, privacy=seeded())
    with pytest.raises(ValueError, match="would allow to publish one of 12 clients"):
        go(ALGORITHM, data, privacy=seeded(delta=0.1))
    with pytest.raises(TypeError, match="privacy must be a CentralDP"):
        go(ALGORITHM, data, privacy=8.0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"clip": 0.0}, "clip must be a positive number"),
        ({"clip": None}, "clip must be a positive number"),
        ({"noise_multiplier": -1.0}, "noise_multiplier must be a positive number"),
        ({"noise_multiplier": None}, "give noise_multiplier, or epsilon"),
        ({"epsilon": float("inf")}, "epsilon must be a positive number"),
        ({"delta": 0.0}, "delta must be a number between 0 and 1"),
        ({"noise_seed": "x"}, "noise_seed must be None, or a whole number"),
    ],
    ids=str,
)
def test_bad_numbers_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        seeded(**wrong)


def test_clients_count_equally_whatever_their_rows():
    rng = np.random.default_rng(0)
    X, clients = rng.standard_normal((90, 4)), np.repeat([0, 1, 2], [10, 20, 60])
    y = X[:, 0] * (1 + clients)
    by_rows, equal = (
        up.FederatedData.from_arrays(X, y, clients, weights=weights) for weights in ("samples", "uniform")
    )
    problem = up.Problem(up.Squared(), up.Zero())
    options = {"rounds": 20, "privacy": seeded(clip=1e9, noise_multiplier=1e-19)}
    found = up.simulate(ALGORITHM, problem, by_rows, **options)
    np.testing.assert_allclose(found.w, up.simulate(ALGORITHM, problem, equal, rounds=20).w, atol=1e-8)
    assert "clients count equally, not by π_k: the shares π_k depend on the rows" in found.notes
    assert np.abs(found.w - up.simulate(ALGORITHM, problem, by_rows, rounds=20).w).max() > 0.1


def test_memory_makes_sampling_count_for_nothing(data):
    """What SCAFFOLD's clients remember tells when they took part: each may have been in every round."""
    sampled = go(BY_VALUE, data, cohort=5, privacy=seeded())
    everybody = go(ALGORITHM, data, cohort=None, privacy=seeded())
    assert sampled.privacy.epsilon == everybody.privacy.epsilon
    assert go(ALGORITHM, data, cohort=1, privacy=seeded()).privacy.epsilon < everybody.privacy.epsilon
    assert any("sampling them is not counted" in note for note in sampled.notes)


def test_a_client_that_diverges_does_not_end_a_private_run(data):
    X = np.array(data.X)
    X[data.offsets[4] : data.offsets[5]] *= 1e90
    wild = up.FederatedData.from_arrays(X, data.y, np.repeat(np.arange(12), data.sizes))
    run = go(ALGORITHM, wild, cohort=None, privacy=seeded(history=True), rounds=1, every=100)
    assert run.privacy.not_finite == 1
    assert any("1 upload was not finite" in note for note in run.notes)
    assert np.isfinite(run.w).all()


def test_sparse_rows_give_what_dense_rows_give():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 60)) * (rng.random((150, 60)) < 0.08)
    clients, y, w0 = np.sort(rng.integers(0, 12, 150)), X[:, 0] + 0.3, rng.standard_normal(60)
    problem = up.Problem(up.Squared(), up.L1(0.02), intercept=True)
    dense, csr = (
        up.simulate(
            ALGORITHM,
            problem,
            up.FederatedData.from_arrays(M, y, clients),
            rounds=8,
            cohort=6,
            batch_size=4,
            w0=w0,
            privacy=seeded(clip=3.0),
        )
        for M in (X, sparse.csr_array(X))
    )
    np.testing.assert_allclose(csr.w, dense.w, rtol=1e-10, atol=1e-11)
    assert csr.privacy == dense.privacy
    assert 0 < csr.privacy.clipped < csr.privacy.uploads


def test_without_dp_accounting_it_is_said_what_to_install(data, monkeypatch):
    real = builtins.__import__

    def absent(name, *arguments, **options):
        if name.startswith("dp_accounting"):
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(ImportError, match=r"pip install 'unpooled\[privacy\]'"):
        go(ALGORITHM, data, privacy=up.CentralDP(clip=1.0, epsilon=3.3, delta=1e-4))
