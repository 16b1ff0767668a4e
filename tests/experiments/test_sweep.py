"""Sweeps: their file, a point of one, slopes that are known, and what becomes of a bound."""

import dataclasses

import numpy as np
import pytest

from unpooled.experiments.jobs import point_jobs
from unpooled.experiments.sweep import Line, at, is_study, lines, make_sweep, read_study
from unpooled.report.sweep_report import payload, study_report


@pytest.fixture(scope="module")
def study():
    return read_study("speedup")


def test_the_study_is_read(study):
    assert is_study("speedup")
    assert not is_study("lasso")
    assert list(study.sweeps) == ["horizon", "clients", "recovery"]
    recovery = study.sweeps["recovery"]
    N = 16 * np.array(recovery.tables["data"]["n_rows"]["each"])
    assert np.allclose(recovery.x, np.sqrt(8 * np.log(256) / N), rtol=1e-5)
    lam = np.array(recovery.tables["problem"]["lam"]["each"])
    assert np.allclose(lam, 4 * np.sqrt(np.log(256) / N), rtol=1e-5)
    assert np.allclose(recovery.bound, 4 * np.sqrt(8) * lam * 3, rtol=1e-5)
    mc = recovery.methods["MC-FedDA"]
    assert np.allclose(mc["lambda0"]["each"], 4 * lam, rtol=1e-5)
    assert np.allclose(mc["radius"]["each"], 108 * 8 * 4 * lam * 3, rtol=1e-5)
    horizon = study.sweeps["horizon"]
    assert np.allclose(horizon.methods["FedDA"]["step"]["each"], 2 / (4 * np.sqrt(horizon.x)))
    assert np.array_equal(4 * np.array(horizon.tables["run"]["rounds"]["each"]), horizon.x)


def test_each_takes_its_own_value():
    assert at({"a": 1, "b": {"each": [5, 6]}}, 1) == {"a": 1, "b": 6}


def test_each_must_have_a_value_for_every_x(study):
    from unpooled.experiments.experiment import table

    file = table("speedup")["sweeps"]["clients"]
    file["run"] = {"rounds": {"each": [1, 2]}, "batch_size": 1}
    with pytest.raises(ValueError, match="rounds has 2 values for 5 of x"):
        make_sweep("clients", file)


def test_a_point_is_saved_and_read_back(study, tmp_path):
    todo = point_jobs(study, ["Fast-FedDA"], 1, quick=False, folder=tmp_path, resume=True)
    assert {job.sweep for job in todo} == {"horizon", "clients"}
    job = next(job for job in todo if job.sweep == "clients" and job.index == 1)
    job.file.parent.mkdir(parents=True)
    run = job.run()
    assert run.ledger.client_updates == 2 * 256
    assert 0 < run.history["gap"][-1] < run.history["gap"][0]
    assert job.run().seconds == run.seconds  # read, not run again


def line_of(study, slope, name="clients", method="Fast-FedDA"):
    sweep = study.sweeps[name]
    return Line(sweep, method, tuple((0.5 * x**slope, 1.5 * x**slope) for x in sweep.x))


def test_slope_of_a_power_law(study):
    line = line_of(study, -1.0)
    assert line.slope == pytest.approx(-1.0)
    assert line.holds
    assert not line_of(study, -0.5).holds
    assert line.mean == pytest.approx([1 / x for x in line.sweep.x])
    assert line.within_bound is None


def test_bounds_are_counted(study):
    line = line_of(study, 1.0, "recovery", "C-FedDA")
    assert line.within_bound == (10, 10)
    tight = dataclasses.replace(line, sweep=dataclasses.replace(line.sweep, bound=line.sweep.x))
    assert tight.within_bound == (5, 10)
    assert tight.share_of_bound == pytest.approx(1.5)


def test_a_diverged_run_is_infinite_and_said(study, tmp_path):
    sweep = study.sweeps["clients"]
    run = sweep.run("Fast-FedDA", 0, 0, rounds=2)
    broken = dataclasses.replace(run, status="diverged")
    line = lines(sweep, {("Fast-FedDA", i): [broken if i == 2 else run] for i in range(5)})[0]
    assert line.values[2] == (np.inf,)
    assert not line.holds
    page = study_report(study, [line], [run] * 5, tmp_path / "s.html", "unpooled reproduce speedup")
    text = page.read_text("utf-8")
    assert "The speed-up in K, Fast-FedDA: a run diverged." in text
    assert "0 of 1 fitted slope " in text


def test_payload_has_an_axis_for_each_sweep(study):
    data = payload([line_of(study, -1.0), line_of(study, 1.0, "recovery", "C-FedDA")])
    assert [m["name"] for m in data["methods"]] == [
        "Fast-FedDA", "C-FedDA", "the theorem's bound 4√s λ/μ",
    ]  # fmt: skip
    clients, recovery = data["metrics"]
    assert clients["x"]["label"] == "clients K"
    assert clients["curves"][0]["round"] == [1, 2, 4, 8, 16]
    assert clients["curves"][1]["round"] == []
    assert recovery["curves"][1]["round"] == sorted(recovery["curves"][1]["round"])
    assert "low" not in recovery["curves"][2]
