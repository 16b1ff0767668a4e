"""The bits of the local engine, in Flower's simulation: by our own server, and by Flower's loop."""

import numpy as np
import pytest
from flwr.serverapp import ServerApp

import unpooled as up
from tests.flower.apps import (
    DATA,
    FAST,
    OPTIONS,
    POISONED,
    PROBLEM,
    SCAFFOLD,
    SITES,
    by_strategy,
    jobs,
    moody,
    same,
)
from tests.flower.simulation import simulated
from unpooled.flower import CompositeStrategy, server_app

COHORT = {"fraction_train": 0.67, "min_train_nodes": 2, "min_available_nodes": 3, "batch_size": 8, "seed": 7}
EVERYONE = {"min_train_nodes": 3, "min_available_nodes": 3, "fraction_evaluate": 1.0}


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
        seen["scaffold"] = by_strategy(grid, SCAFFOLD, **EVERYONE)
        seen["poisoned"] = by_strategy(grid, FAST, seed=POISONED, min_available_nodes=3)
        strict = CompositeStrategy(FAST, PROBLEM, seed=POISONED, min_train_nodes=3, min_available_nodes=3)
        options = {"min_available_nodes": 3, "then": lambda fit: seen.setdefault("fits", []).append(fit)}
        server_app(PROBLEM, folder=folder / "exact", **options)(grid, context)
        server_app(PROBLEM, folder=folder / "exact", **options)(grid, context)
        server_app(PROBLEM, algorithm=FAST, options=OPTIONS, folder=folder / "fast", **options)(grid, context)
        seen["too few"] = strict.start(grid, strict.initial_arrays(grid), num_rounds=1), strict.round

    simulated(server, moody, len(SITES))
    return seen


def test_an_exact_solve_has_the_same_bits(seen):
    here = up.solve(PROBLEM, DATA)
    assert same((seen["solve"].w, seen["solve"].intercept), (here.w, here.intercept))
    assert seen["solve"].rounds == here.rounds == 1
    assert seen["sites"] == SITES


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


def test_a_nan_upload_is_left_out_by_name_and_the_round_goes_on(seen):
    w, _, result, notes = seen["poisoned"]
    assert np.isfinite(w).all()
    assert w.any()
    assert len(result.train_metrics_clientapp) == 2
    assert notes == ["client 'south' was left out of 2 rounds, last of round 2: its upload is not finite."]


def test_a_round_with_too_few_uploads_does_not_count(seen):
    result, round = seen["too few"]
    assert not result.arrays
    assert not result.train_metrics_clientapp
    assert round == 0


def test_the_server_app_solves_and_writes_the_model(seen, folder):
    here = up.solve(PROBLEM, DATA)
    first, again, _ = seen["fits"]
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


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fraction_train": 1.5}, "fraction_train must be between 0 and 1, got 1.5"),
        ({"min_train_nodes": 3}, "at most min_available_nodes, got 3 and 2"),
        ({"weighting": "fair"}, "weighting must be one of renormalised, unbiased"),
    ],
)
def test_bad_options_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        CompositeStrategy(FAST, PROBLEM, **options)
