"""The command line, as a user types it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import unpooled as up
from unpooled.cli import app

runner = CliRunner()


def test_version_and_help():
    assert runner.invoke(app, ["--version"]).output.strip() == f"unpooled {up.__version__}"
    assert "reproduce" in runner.invoke(app, ["--help"]).output
    command = shutil.which("unpooled", path=str(Path(sys.executable).parent))
    assert command is not None
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert up.__version__ in done.stdout


def test_reproduce_one_method(tmp_path):
    """A real run of one method at the paper's size; its figure and its saved run."""
    result = runner.invoke(
        app, ["reproduce", "lasso", "--methods", "Fast-FedDA", "--seeds", "1", "--out", str(tmp_path)]
    )
    assert result.exit_code == 0, result.output
    assert "Fast-FedDA" in result.output
    assert "values agree with the expected ones" in result.output
    folder = tmp_path / "lasso"
    page = (folder / "lasso.html").read_text("utf-8")
    assert "Federated sparse linear regression" in page
    assert (folder / "lasso.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "lasso.pdf").read_bytes().startswith(b"%PDF")
    run = up.load(folder / "Fast-FedDA-seed0.run")
    assert run.status == "completed"
    assert run.ledger.rounds == 2000


def test_reproduce_on_real_handwriting(tmp_path):
    arguments = [
        "reproduce",
        "digits",
        "--quick",
        "--seeds",
        "1",
        "--methods",
        "Fast-FedDA",
        "--out",
        str(tmp_path),
    ]
    result = runner.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "test accuracy" in result.output
    assert up.load(tmp_path / "digits" / "Fast-FedDA-seed0.run").history["test_accuracy"][-1] > 0.9
    assert (tmp_path / "digits" / "history.csv").is_file()
    assert (tmp_path / "digits" / "weights.png").is_file()
    saved = str(tmp_path / "digits" / "Fast-FedDA-seed0.run")
    result = runner.invoke(app, ["report", saved, "--out", str(tmp_path / "r.html"), "--title", "Digits"])
    assert result.exit_code == 0, result.output
    assert "<title>Digits" in (tmp_path / "r.html").read_text("utf-8")


def test_list_and_missing_data(tmp_path):
    listed = runner.invoke(app, ["reproduce", "--list"])
    assert listed.exit_code == 0
    assert all(name in listed.output for name in ("lasso", "lowrank", "digits", "emnist10", "emnist62"))
    missing = runner.invoke(app, ["reproduce", "emnist10", "--data", str(tmp_path), "--out", str(tmp_path)])
    assert missing.exit_code == 2
    assert "LEAF" in missing.output
    assert "--data is not given" not in missing.output
    ungiven = runner.invoke(app, ["reproduce", "emnist10", "--out", str(tmp_path / "none")])
    assert ungiven.exit_code == 2
    assert "--data is not given" in ungiven.output
    assert not (tmp_path / "none").exists()


def test_a_report_goes_to_a_file(tmp_path):
    refused = runner.invoke(app, ["report", "a.run", "--out", str(tmp_path)])
    assert refused.exit_code == 2
    assert "is a folder" in " ".join(refused.output.replace("│", " ").split())


def test_a_report_that_cannot_be_written_blames_out(tmp_path):
    data = up.datasets.sparse_regression(seed=0, n_clients=2, n_rows=10, n_features=4, sparsity=2)
    algorithm = up.FedDA(step=0.01, local_steps=1)
    run = up.simulate(algorithm, up.Problem(up.Squared(), up.L1(0.1)), data, rounds=2, progress=False)
    saved = str(run.save(tmp_path / "a.run"))
    refused = runner.invoke(app, ["report", saved, "--out", str(tmp_path / "a.run" / "page.html")])
    assert refused.exit_code == 2
    assert "Invalid value for --out" in refused.output


@pytest.mark.slow
def test_all_experiments_one_after_the_other(tmp_path):
    arguments = [
        "reproduce",
        "all",
        "--quick",
        "--seeds",
        "1",
        "--methods",
        "Fast-FedDA",
        "--out",
        str(tmp_path),
    ]
    result = runner.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    for name in ("digits", "lasso", "lowrank", "speedup"):
        assert (tmp_path / name / f"{name}.html").is_file()
        assert (tmp_path / name / f"{name}.pdf").is_file()
    assert "No data for emnist10" in result.output
    assert result.output.count("not run: needs --data") == 2
    assert (tmp_path / "speedup" / "results.csv").read_text().startswith("sweep,method,x,seed,quantity,value")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "nothing"], "unknown experiment 'nothing'"),
        (["reproduce", "lasso", "--methods", "Adam"], "Adam is not one of FedMiD"),
        (["report", "missing.run"], "there is no run at missing.run"),
        (["reproduce", "lasso", "--seeds", "0"], "--seeds"),
    ],
)
def test_mistakes(arguments, message):
    result = runner.invoke(app, arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.output.replace("│", " ").split())
