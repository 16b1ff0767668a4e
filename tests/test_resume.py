"""Runs that stop and go on: checkpoints, Ctrl-C, resuming to the same bits or being refused."""

import contextlib

import numpy as np
import pytest

import unpooled as up
from tests.full_disks import full
from tests.runs import ALGORITHMS, FAST, NAMES, go, same_bits


@pytest.fixture(scope="module")
def data(small):
    return small


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=NAMES)
def test_resumed_is_uninterrupted(data, algorithm, tmp_path):
    stages = isinstance(algorithm, up.MCFedDA)
    if stages:  # its λ rule spreads the stages over all rounds, so both must know how many there are
        algorithm = up.MCFedDA(mu=0.1, gamma=20.0, local_steps=4, stages=[(4, 0.2, 9.0), (16, 0.1, np.inf)])
    whole = go(algorithm, data, rounds=20, every=3, metrics={"nonzeros": up.metrics.nonzeros()})
    half = go(algorithm, data, rounds=10, every=3, metrics={"nonzeros": up.metrics.nonzeros()})
    path = half.save(tmp_path / "half.run")
    for start in (half, path, str(path)):
        rest = go(
            algorithm, data, rounds=20, every=3, metrics={"nonzeros": up.metrics.nonzeros()}, resume=start
        )
        same_bits(whole, rest)
        assert rest.ledger == whole.ledger


def test_resume_refuses_other_settings(data, tmp_path):
    half = go(FAST, data, rounds=5)
    with pytest.raises(ValueError, match=r"had other settings: batch_size: 7 then, 8 now"):
        go(FAST, data, resume=half, batch_size=8)
    with pytest.raises(ValueError, match=r"data: '\w+' then, '\w+' now"):
        go(
            FAST,
            up.datasets.sparse_regression(seed=3, n_clients=12, n_rows=30, n_features=40, sparsity=8),
            resume=half,
        )
    with pytest.raises(ValueError, match=r"algorithm's gamma: 80.0 then, 81.0 now"):
        go(up.FastFedDA(mu=0.1, gamma=81.0, local_steps=4, schedule="uniform"), data, resume=half)
    with pytest.raises(ValueError, match=r"a run of FastFedDA, it cannot be resumed with FedDA"):
        go(up.FedDA(step=0.01), data, resume=half)
    with pytest.raises(ValueError, match=r"has done 5 rounds, more than rounds=4"):
        go(FAST, data, rounds=4, resume=half)
    with pytest.raises(ValueError, match=r"problem: "):
        up.simulate(
            FAST,
            up.Problem(up.Squared(), up.L1(0.2)),
            data,
            rounds=9,
            cohort=5,
            batch_size=7,
            seed=1,
            resume=half,
        )


def test_a_checkpoint_is_a_run_to_resume(data, tmp_path, monkeypatch):
    monkeypatch.setattr("unpooled.runs.checkpoint.SAVE_SECONDS", 0.0)
    path = tmp_path / "run.run"

    class StopError(Exception):
        pass

    def stop_at_nine(w):
        stop_at_nine.calls += 1
        if stop_at_nine.calls > 4:
            raise StopError
        return 0.0

    stop_at_nine.calls = 0
    with pytest.raises(StopError):
        go(FAST, data, every=3, checkpoint=path, metrics={"n": stop_at_nine})
    saved = up.load(path)
    assert saved.status == "interrupted"
    assert saved.ledger.rounds == 11  # also of rounds that are not recorded
    rest = go(FAST, data, every=3, resume=path, metrics={"n": lambda w: 0.0})
    same_bits(rest, go(FAST, data, every=3, metrics={"n": lambda w: 0.0}))


@contextlib.contextmanager
def filling(rounds):
    """A metric in whose rounds, from one to another, saves find the disk full."""

    def metric(w):
        metric.calls += 1
        return 0.0

    metric.calls = 0
    with full(lambda path: metric.calls - 1 in rounds):
        yield {"n": metric}


def test_a_full_disk_costs_checkpoints_only(data, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("unpooled.runs.checkpoint.SAVE_SECONDS", 0.0)
    path, whole = tmp_path / "run.run", go(FAST, data, every=1, metrics={"n": lambda w: 0.0})
    with filling(range(4, 8)) as metrics:
        run = go(FAST, data, every=1, checkpoint=path, metrics=metrics)
    assert run.status == "completed"
    same_bits(run, whole)
    same_bits(up.load(path), whole)  # there was room again
    assert run.notes == whole.notes
    [record] = caplog.records
    assert "run.run cannot be written after round 4 (No space left on device): the run" in record.message


def test_a_disk_that_is_full_at_the_end_leaves_the_last_checkpoint(data, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(
        "unpooled.runs.checkpoint.SAVE_SECONDS", np.inf
    )  # after the first round, and at the end
    path, whole = tmp_path / "run.run", go(FAST, data, every=1, metrics={"n": lambda w: 0.0})
    with filling(range(12, 13)) as metrics:
        run = go(FAST, data, every=1, checkpoint=path, metrics=metrics)
    same_bits(run, whole)
    assert run.notes[-1] == f"The run is not in {path}, which could not be written: save it elsewhere."
    assert "cannot be written after round 12" in caplog.text
    assert list(tmp_path.iterdir()) == [path]
    kept = up.load(path)
    assert kept.state.round == 1
    same_bits(go(FAST, data, every=1, resume=kept, metrics={"n": lambda w: 0.0}), whole)


def test_ctrl_c_leaves_a_run(data, tmp_path):
    def interrupt(w):
        interrupt.calls += 1
        if interrupt.calls > 3:
            raise KeyboardInterrupt
        return 0.0

    interrupt.calls = 0
    run = go(FAST, data, every=2, checkpoint=tmp_path / "c.run", metrics={"n": interrupt})
    assert run.status == "interrupted"
    assert "after round 6 of 12" in run.message
    assert up.load(tmp_path / "c.run").status == "interrupted"
    rest = go(FAST, data, every=2, resume=run, metrics={"n": lambda w: 0.0})
    same_bits(rest, go(FAST, data, every=2, metrics={"n": lambda w: 0.0}))  # with the row that was cut off


def test_resuming_after_ctrl_c_in_the_middle_of_a_round(data, monkeypatch):
    """An interrupt that comes after the clients have worked, before the server has: nothing is half done."""
    algorithm = up.Scaffold(step=0.01, local_steps=4)
    whole = go(algorithm, data, rounds=20)
    half = interrupted(monkeypatch, algorithm, data, after=7, rounds=20)
    assert half.ledger.rounds == half.state.round == 7
    same_bits(whole, go(algorithm, data, rounds=20, resume=half))


def interrupted(monkeypatch, algorithm, data, after, **options):
    """A run into which Ctrl-C comes after so many rounds, between the clients' work and the server's."""
    kind, calls = type(algorithm), []
    update = kind.server_update

    def server_update(self, *arguments):
        calls.append(1)
        if len(calls) > after:
            raise KeyboardInterrupt
        return update(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(kind, "server_update", server_update)
        run = go(algorithm, data, **options)
    assert run.status == "interrupted"
    return run


def test_what_was_chosen_is_kept_when_a_run_is_resumed(data, tmp_path, monkeypatch):
    for algorithm in (up.MCFedDA(mu=0.1, gamma=20.0, lambda0=0.4), up.MCFedDA(), up.FastFedDA()):
        whole = go(algorithm, data, rounds=30)
        half = interrupted(monkeypatch, algorithm, data, after=11, rounds=30)
        same_bits(whole, go(algorithm, data, rounds=30, resume=half.save(tmp_path / "half.run")))
    short = go(up.FastFedDA(), data, rounds=10)
    longer = go(up.FastFedDA(), data, rounds=20, resume=short)
    assert longer.notes[-1] == "the numbers chosen for 10 rounds were kept for 20"
    assert longer.settings["algorithm"] == short.settings["algorithm"]
    chosen = {name: short.settings["algorithm"][name] for name in ("mu", "gamma", "a")}
    assert np.array_equal(go(up.FastFedDA(**chosen), data, rounds=20, resume=short).w, longer.w)


def test_resume_compares_problems_by_their_contents(data):
    def run(groups, **options):
        return go(FAST, data, problem=up.Problem(up.Squared(), up.GroupL2(0.1, groups=groups)), **options)

    half = run(np.arange(40) // 2, rounds=5)
    assert run(np.arange(40) // 2, resume=half).status == "completed"
    with pytest.raises(ValueError, match="problem: "):
        run(np.arange(40) % 20, resume=half)

    class Mine:
        def value(self, w, X, y):
            return float(np.mean((X @ w - y) ** 2) / 2)

        def gradient(self, w, X, y):
            return X.T @ (X @ w - y) / len(y)

    half = go(FAST, data, problem=up.Problem(Mine(), up.L1(0.1)), rounds=5)
    assert "0x" not in half.settings["problem"]
    assert go(FAST, data, problem=up.Problem(Mine(), up.L1(0.1)), resume=half).status == "completed"


def test_resume_refuses_other_metrics_and_diverged_runs(data):
    half = go(FAST, data, rounds=5, metrics={"nonzeros": up.metrics.nonzeros()})
    with pytest.raises(ValueError, match=r"had other metrics: nonzeros then, none now"):
        go(FAST, data, resume=half)
    gone = go(up.FedAvg(step=50.0), data, rounds=300)
    with pytest.raises(ValueError, match=r"the run to resume diverged, there is nothing to go on from"):
        go(up.FedAvg(step=50.0), data, rounds=400, resume=gone)


def test_a_resumed_run_that_diverges_has_the_last_good_state_too():
    rng = np.random.default_rng(0)
    X, clients = rng.normal(size=(60, 5)), np.repeat(np.arange(6), 10)
    data = up.FederatedData.from_arrays(X, rng.poisson(1.0, size=60).astype(float), clients)
    problem, algorithm = up.Problem(up.Poisson(), up.L1(0.01)), up.FedAvg(step=2.0, local_steps=1)
    whole = up.simulate(algorithm, problem, data, rounds=400, every=1)
    assert whole.status == "diverged"
    last = int(whole.history["round"][-1])
    part = up.simulate(algorithm, problem, data, rounds=last, every=1)
    rest = up.simulate(algorithm, problem, data, rounds=400, every=1, resume=part)
    assert rest.status == "diverged"
    assert rest.state.round == whole.state.round
    same_bits(whole, rest)
    assert np.isfinite(problem.objective(rest.w, data))


def test_an_aggregate_of_ones_own_is_known_again(data, tmp_path):
    class Own(up.Aggregate):
        def __init__(self, factor):
            self.factor = factor

        def combine(self, mean, weights, up):
            mean += self.factor * np.tensordot(weights, up, 1)

    whole, half = (go(FAST, data, rounds=n, aggregate=Own(1.0)) for n in (8, 4))
    path = half.save(tmp_path / "half.run")
    same_bits(whole, go(FAST, data, rounds=8, aggregate=Own(1.0), resume=path))
    with pytest.raises(ValueError, match="had other settings: aggregate"):
        go(FAST, data, rounds=8, aggregate=Own(0.5), resume=path)
