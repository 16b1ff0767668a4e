"""The bits of the local engine, in Flower's simulation: by our own server, and by Flower's loop."""

import contextlib

import numpy as np
import pytest
from flwr.serverapp import ServerApp

import unpooled as up
from tests.flower.apps import (
    DATA,
    FAST,
    LOUD,
    OPTIONS,
    OWN,
    POISONED,
    PROBLEM,
    SCAFFOLD,
    SITES,
    STAGES,
    by_strategy,
    jobs,
    moody,
    same,
)
from tests.flower.simulation import simulated
from tests.full_disks import full
from unpooled.runs.flower import CompositeStrategy, server_app

COHORT = {"fraction_train": 0.67, "min_train_nodes": 2, "min_available_nodes": 3, "batch_size": 8, "seed": 7}
EVERYONE = {"min_train_nodes": 3, "min_available_nodes": 3}
PRIVATE = up.CentralDP(clip=5.0, epsilon=50.0, delta=1e-3, noise_seed=3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="module")
def seen(folder):
    """What server apps saw, in one simulation."""
    seen = {}
    server = ServerApp()

    @server.main()
    def main(grid, context):
        seen.update(jobs(grid))
        seen["strategy"] = by_strategy(grid, FAST, **COHORT)
        seen["scaffold"] = by_strategy(grid, SCAFFOLD, fraction_evaluate=1.0, **EVERYONE)
        seen["stages"] = by_strategy(grid, STAGES, **EVERYONE)
        seen["median"] = by_strategy(grid, FAST, 1, aggregate=up.CoordinateMedian(), seed=LOUD, **EVERYONE)
        with pytest.warns(UserWarning, match="noise_seed"):
            seen["private"] = by_strategy(grid, FAST, 2, rounds=1, privacy=PRIVATE, **COHORT)
        seen["poisoned"] = by_strategy(grid, FAST, seed=POISONED, min_available_nodes=3)
        seen["loud"] = by_strategy(grid, FAST, 1, seed=LOUD, min_available_nodes=3, norm_bound=1e6)
        strict = CompositeStrategy(FAST, PROBLEM, seed=POISONED, **EVERYONE)
        options = {"min_available_nodes": 3, "then": lambda fit: seen.setdefault("fits", []).append(fit)}
        server_app(PROBLEM, folder=folder / "exact", **options)(grid, context)
        server_app(PROBLEM, folder=folder / "exact", **options)(grid, context)
        rounds = {**options, "algorithm": FAST, "options": OPTIONS}
        server_app(PROBLEM, folder=folder / "fast", **rounds)(grid, context)
        with contextlib.suppress(OSError), full(once("checkpoint.run", "model.npz")):
            server_app(PROBLEM, folder=folder / "full", **rounds)(grid, context)
        loud = {**rounds, "options": {**OPTIONS, "seed": LOUD, "cohort": None, "rounds": 1}}
        server_app(PROBLEM, norm_bound=1e6, min_train_nodes=2, **loud)(grid, context)
        seen["too few"] = strict.start(grid, strict.initial_arrays(grid), num_rounds=1), strict.round

    simulated(server, moody, len(SITES))
    return seen


def once(*names):
    """Whether it is the first time that one of these files is written."""
    left = [f".{name}." for name in names]

    def is_first(path):
        found = [each for each in left if path.name.startswith(each)]
        for each in found:
            left.remove(each)
        return bool(found)

    return is_first


def test_an_exact_solve_has_the_same_bits(seen):
    here = up.solve(PROBLEM, DATA)
    assert same((seen["solve"].w, seen["solve"].intercept), (here.w, here.intercept))
    assert seen["solve"].rounds == here.rounds == 1
    assert seen["sites"] == SITES


def test_a_loss_and_a_penalty_of_ones_own_have_the_same_bits(seen):
    here = up.solve(OWN, DATA)
    assert same((seen["own"].w, seen["own"].intercept), (here.w, here.intercept))
    run = up.simulate(SCAFFOLD, OWN, DATA, rounds=2, batch_size=8)
    assert same(seen["own run"], (run.w, run.intercept))


def test_minibatches_of_a_cohort_have_the_same_bits(seen):
    here = up.simulate(FAST, PROBLEM, DATA, **OPTIONS)
    assert same(seen["fast"], (here.w, here.intercept))


def test_flowers_own_loop_has_the_same_bits(seen):
    here = up.simulate(FAST, PROBLEM, DATA, **OPTIONS)
    w, intercept, result, _ = seen["strategy"]
    assert same((w, intercept), (here.w, here.intercept))
    assert [record["round"] for record in result.train_metrics_clientapp.values()] == [1, 2]


def test_memory_stays_with_the_clients_of_flowers_loop(seen):
    here = up.simulate(SCAFFOLD, PROBLEM, DATA, rounds=2, every=1)
    w, intercept, result, _ = seen["scaffold"]
    assert same((w, intercept), (here.w, here.intercept))
    told = [record["objective"] for record in result.evaluate_metrics_clientapp.values()]
    np.testing.assert_allclose(told, here.history["objective"][1:], rtol=1e-12)


def test_stages_have_the_same_bits_in_flowers_loop(seen):
    here = up.simulate(STAGES, PROBLEM, DATA)
    assert here.ledger.rounds == 2
    assert same(seen["stages"][:2], (here.w, here.intercept))


def test_flowers_loop_takes_a_median_of_uploads(seen):
    w, *_ = seen["median"]
    there = up.simulate(FAST, PROBLEM, DATA, rounds=1, aggregate=up.CoordinateMedian())
    assert np.abs(w - there.w).max() < 1.0  # whatever the south sends


def test_flowers_loop_is_private_to_the_same_bits_and_keeps_to_the_budget(seen):
    w, intercept, result, strategy = seen["private"]
    with pytest.warns(UserWarning, match="noise_seed"):
        here = up.simulate(FAST, PROBLEM, DATA, **(OPTIONS | {"rounds": 1}), privacy=PRIVATE)
    assert same((w, intercept), (here.w, here.intercept))
    assert strategy.spent == here.privacy
    assert set(here.privacy.notes()) <= set(strategy.notes)
    assert list(result.train_metrics_clientapp) == [1]  # the second was one too many


def test_a_nan_upload_is_left_out_by_name_and_the_round_goes_on(seen):
    w, _, result, strategy = seen["poisoned"]
    assert np.isfinite(w).all()
    assert w.any()
    assert len(result.train_metrics_clientapp) == 2
    chosen, left_out = strategy.notes
    assert chosen == "a = 2000: 4 gamma / mu"
    assert left_out == "client 'south' was left out of 2 rounds, last of round 2: its upload is not finite."


def test_an_upload_beyond_the_bound_is_left_out_by_name_and_the_round_goes_on(seen):
    w, _, result, strategy = seen["loud"]
    _, note = strategy.notes
    assert note.startswith("client 'south' was left out of 1 round, last of round 1: its upload has the norm")
    assert note.endswith(", above 1e+06.")
    assert len(result.train_metrics_clientapp) == 1
    assert np.abs(w).max() < 10.0
    assert seen["fits"][4].notes[1:] == [note]  # of the server app's own rounds


def test_a_round_with_too_few_uploads_does_not_count(seen):
    result, round = seen["too few"]
    assert not result.arrays
    assert not result.train_metrics_clientapp
    assert round == 0


def test_the_server_app_solves_and_writes_the_model(seen, folder):
    here = up.solve(PROBLEM, DATA)
    first, again, *_ = seen["fits"]
    assert same((first.w, first.intercept), (here.w, here.intercept))
    assert same((again.w, again.intercept), (here.w, here.intercept))
    with np.load(folder / "exact" / "model.npz") as model:
        assert same((model["w"], model["intercept"]), (here.w, here.intercept))
    assert (folder / "exact" / "summary.txt").read_text() == here.summary() + "\n"


def test_the_server_app_runs_rounds_and_keeps_a_checkpoint(seen, folder):
    here = up.simulate(FAST, PROBLEM, DATA, **OPTIONS)
    run = seen["fits"][2]
    assert same((run.w, run.intercept), (here.w, here.intercept))
    kept = up.load(folder / "fast" / "checkpoint.run")
    assert same((kept.w, kept.intercept), (here.w, here.intercept))


def test_a_full_disk_costs_a_checkpoint_and_the_result_is_handed_on(seen, folder):
    run = seen["fits"][3]
    assert run.status == "completed"
    assert same((run.w, run.intercept), (seen["fits"][2].w, seen["fits"][2].intercept))
    assert same((up.load(folder / "full" / "checkpoint.run").w,), (run.w,))  # there was room again
    assert not (folder / "full" / "model.npz").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fraction_train": 1.5}, "fraction_train must be between 0 and 1, got 1.5"),
        ({"min_train_nodes": 3}, "at most min_available_nodes, got 3 and 2"),
        ({"min_evaluate_nodes": 0, "fraction_evaluate": 0.1}, "min_evaluate_nodes must be at least 1"),
        ({"weighting": "fair"}, "weighting must be one of renormalised, unbiased"),
        ({"norm_bound": -1.0}, "norm_bound positive"),
        ({"privacy": PRIVATE}, "give rounds"),
        ({"privacy": PRIVATE, "aggregate": up.CoordinateMedian()}, "accounted for means only"),
    ],
)
def test_bad_options_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        CompositeStrategy(FAST, PROBLEM, **options)


def test_flowers_words_without_a_meaning_are_refused_with_the_reason():
    with pytest.raises(TypeError, match="takes no weighted_by_key: clients count by their rows"):
        CompositeStrategy(FAST, PROBLEM, weighted_by_key="num-examples")
    with pytest.raises(TypeError, match="takes no fraction_fit"):
        CompositeStrategy(FAST, PROBLEM, fraction_fit=0.5)
    with pytest.raises(TypeError, match="aggregate must be Mean"):
        CompositeStrategy(FAST, PROBLEM, aggregate="median")
