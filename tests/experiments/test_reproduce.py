"""Experiments as data: every file is read, runs are saved, resumed, and the same in parallel."""

import csv
import dataclasses

import numpy as np
import pytest

import unpooled as up
from unpooled.experiments import available, read
from unpooled.experiments.csv_files import write_history
from unpooled.experiments.experiment import table
from unpooled.experiments.jobs import method_jobs, slug
from unpooled.experiments.sweep import is_study
from unpooled.experiments.verdict import compare
from unpooled.experiments.workers import carry_out
from unpooled.report.reproduce import ReproduceOptions


def test_every_experiment_is_read():
    assert available() == ["digits", "emnist10", "emnist62", "lasso", "lowrank", "speedup"]
    for name in (name for name in available() if not is_study(name)):
        experiment = read(name)
        assert experiment.claims
        assert {"data", "run", "methods"} <= set(experiment.provenance)
        known = {*experiment.methods, *experiment.honest}
        for claim in experiment.claims:
            assert {*claim.methods, *claim.better_than} <= known
            assert claim.metric in {*experiment.metrics, "objective"}
        assert set(table(name)) <= {
            "title", "about", "local_steps", "image", "data", "problem", "run", "quick", "metrics",
            "methods", "honest", "claims", "provenance", "expected",
        }  # fmt: skip
        assert list(experiment.methods) == ["FedMiD", "FedDA", "Fast-FedDA", "C-FedDA", "MC-FedDA"]
        assert experiment.honest
        assert experiment.options["rounds"] == experiment.methods["MC-FedDA"].planned_rounds()
        assert experiment.quick["rounds"] < experiment.options["rounds"]


def test_the_papers_settings():
    emnist = read("emnist10")
    assert (emnist.options["rounds"], emnist.options["cohort"], emnist.options["batch_size"]) == (
        15000,
        36,
        25,
    )
    c = emnist.methods["C-FedDA"]
    assert (c.local_steps, c.mu, c.gamma * c.local_steps) == (40, 1e-3, 25)
    wide = read("emnist62").methods["C-FedDA"]
    assert (wide.local_steps, wide.gamma * wide.local_steps) == (10, 25)
    lasso = read("lasso")
    assert lasso.problem == up.Problem(up.Squared(), up.L1(0.5**5))
    assert lasso.methods["Fast-FedDA"] == up.FastFedDA(
        mu=0.1, gamma=550.0, local_steps=10, schedule="uniform"
    )


@pytest.fixture(scope="module")
def todo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    options = {"rounds": 6, "every": 2}
    return method_jobs(read("digits"), ["FedDA", "Fast-FedDA"], 2, folder, None, options, resume=False)


def test_parallel_processes_give_the_same_bits(todo):
    one = dict(carry_out(todo, workers=1))
    two = dict(carry_out(todo, workers=2))
    assert one.keys() == two.keys() == set(todo)
    for a, b in ((one[job], two[job]) for job in todo):
        assert np.array_equal(a.w, b.w)
        assert np.array_equal(a.history["test_accuracy"], b.history["test_accuracy"])
    assert len({run.w.tobytes() for run in one.values()}) == 4


def test_resume_takes_what_is_complete_and_goes_on_with_the_rest(todo):
    job = dataclasses.replace(todo[0], resume=True, file=todo[0].file.with_name("again.run"))
    whole = job.run()
    assert job.run().seconds == whole.seconds  # read, not run again
    longer = dataclasses.replace(job, options=tuple({**dict(job.options), "rounds": 9}.items()))
    fresh = dataclasses.replace(longer, resume=False, file=job.file.with_name("fresh.run"))
    assert np.array_equal(longer.run().w, fresh.run().w)


def test_history_is_one_tidy_table(todo, tmp_path):
    runs = {"FedDA": [todo[0].run()], "Fast-FedDA": [todo[1].run()]}
    with write_history(tmp_path / "history.csv", runs).open() as file:
        rows = list(csv.DictReader(file))
    assert rows[0].keys() == {"method", "seed", "round", "metric", "value"}
    assert len(rows) == 2 * 4 * 5  # methods × recorded rounds × (objective and four metrics)
    last = [r for r in rows if (r["method"], r["round"], r["metric"]) == ("FedDA", "6", "test_loss")]
    assert float(last[0]["value"]) == runs["FedDA"][0].history["test_loss"][-1]
    assert compare(read("digits"), runs) == []


def test_the_stand_in_is_called_one(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(
        tmp_path / "mnist_by_writer.npz",
        X=rng.integers(0, 256, (40, 784), dtype=np.uint8),
        y=rng.integers(0, 10, 40).astype(np.uint8),
        writer=np.repeat(np.arange(4, dtype=np.int16), 10),
        mnist_test=np.arange(40) % 5 == 0,
        part367=(np.arange(40) % 5 == 0).astype(np.int8),
    )
    split = read("emnist10").split(0, tmp_path)
    assert split.what == "the stand-in MNIST by NIST writer, which is not FEMNIST"
    assert (split.train.n_clients, split.train.n_rows, split.test.n_rows) == (4, 32, 8)
    with pytest.raises(FileNotFoundError, match="LEAF"):
        read("emnist62").split(0, tmp_path)


def test_file_names():
    assert slug("FedDA (step 1/550)") == "FedDA__step_1_550_"
    assert slug("C-FedDA") == "C-FedDA"


def test_the_command_says_what_was_asked(tmp_path):
    assert ReproduceOptions().command("lasso") == "unpooled reproduce lasso"
    everything = ReproduceOptions(
        True, 2, ("FedDA", "FedDA (step 1/550)"), True, tmp_path, tmp_path, False, 2
    )
    words = everything.command("emnist10", resume=True)
    assert words.startswith("unpooled reproduce emnist10 --seeds 2 --quick --honest --methods 'FedDA,FedDA (")
    assert words.endswith(f"--data {tmp_path} --out {tmp_path} --jobs 2 --resume")
