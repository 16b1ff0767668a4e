"""The commands that need no network, as users type them."""

import json
import re
import socket
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.study.sites import SITES, study, tables
from unpooled.cli import app
from unpooled.study import keys as made_by
from unpooled.study import writing
from unpooled.study.config import load

runner = CliRunner()


def said(*arguments, status=0, answers=None):
    result = runner.invoke(app, [str(each) for each in arguments], input=answers)
    assert result.exit_code == status, result.output
    return " ".join(result.output.replace("│", " ").split())


@pytest.fixture
def wards(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    writing.write(study(), tmp_path / "study.toml")
    tables()["bern"].to_csv(tmp_path / "bern.csv", index=False)
    return tmp_path


def test_init_asks_and_writes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answers = "wards\nbasel, bern\nstudy.org:9092\ndied\nall\nsmoker\nmean\nlogistic\ncv\n20\n"
    assert "study.toml is written" in said("study", "init", answers=answers)
    asked = load("study.toml")
    assert asked.sites == ("basel", "bern")
    assert (asked.target, asked.model, asked.lam, asked.missing) == ("died", "logistic", "cv", "mean")
    assert asked.categorical == {"smoker": "agree"}
    assert asked.minimum_rows == 20
    before = (tmp_path / "study.toml").read_text("utf-8")
    assert "Write over it?" in said("study", "init", answers="n\n", status=1)
    assert (tmp_path / "study.toml").read_text("utf-8") == before


def test_init_takes_every_answer_as_an_option(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ["--sites", "a,b", "--target", "y", "--features", "u,v", "--lambda", "0.5", "--model", "lasso"]
    said("study", "init", "--yes", *options)
    asked = load("study.toml")
    assert (asked.features, asked.lam, asked.name) == (("u", "v"), 0.5, "study")
    assert "no default for it" in said("study", "init", "--yes", "--sites", "a", status=2)
    wrong = said("study", "init", "--yes", *options[:-1], "laso", status=2)
    assert "model.kind must be one of" in wrong
    assert "closest: 'lasso'" in wrong


def test_init_asks_again_for_what_is_wrong_and_keeps_the_rest(tmp_path, monkeypatch):
    """Also where answers are right alone and wrong together."""
    monkeypatch.chdir(tmp_path)
    given = [
        ("wards", None),
        ("basel,,bern", "sites must be a list of names"),
        ("basel, ba sel", "sites has 'ba sel'"),
        ("basel, bern", None),
        ("study.org", "address must be a host and a port"),
        ("http://study.org:9092", "address must be a host and a port"),
        ("https://study.org:9092", None),
        ("died", None),
        ("age, died", "data.target 'died' cannot be a feature as well"),
        ("age, smoker", None),
        ("smoke", "data.categorical names 'smoke', which is not in data.features; closest: 'smoker'"),
        ("smoker", None),
        ("drop", "data.missing must be one of"),
        ("mean", None),
        ("hubert", "model.kind must be one of"),
        ("huber", None),
        ("0,1", "model.lambda must be a number"),
        ("path", 'model.lambda = "path" chooses by likelihood'),
        ("0.1", None),
        ("ten", "limits.minimum_rows must be a whole number"),
        ("12", None),
    ]
    told = said("study", "init", answers="".join(f"{answer}\n" for answer, _ in given))
    for _, complaint in given:
        assert complaint is None or complaint in told
    asked = load("study.toml")
    assert (asked.name, asked.sites, asked.address) == ("wards", ("basel", "bern"), "study.org:9092")
    assert (asked.target, asked.features, asked.missing) == ("died", ("age", "smoker"), "mean")
    assert (asked.model, asked.lam, asked.minimum_rows) == ("huber", 0.1, 12)
    assert asked.categorical == {"smoker": "agree"}


WITHOUT_FLOWER = """
import sys
for name in ("flwr", "cryptography", "grpc", "uvicorn", "httpx"):
    sys.modules[name] = None
from typer.testing import CliRunner
from unpooled.cli import app
join = ["site", "join", "--study", "study.toml", "--data", "bern.csv", "--site", "bern"]
for given in (["study", "keys"], ["study", "run"], ["study", "run", "--insecure"], [*join, "--insecure"]):
    done = CliRunner().invoke(app, given)
    print(done.exit_code, "|", " ".join(done.output.split()))
"""


def test_without_the_extra_the_remedy_is_said(wards):
    done = subprocess.run([sys.executable, "-c", WITHOUT_FLOWER], capture_output=True, text=True, check=True)
    told = done.stdout.splitlines()
    assert len(told) == 4
    for line in told:
        assert line.startswith("2 |"), line
        assert "is not installed: pip install 'unpooled[flower]'" in line
    assert not (wards / "keys").exists()


def test_folders_that_are_missing_or_cannot_be_made(wards):
    join = ["site", "join", "--study", "study.toml", "--data", "bern.csv", "--site", "bern", "--insecure"]
    told = said(*join, "--audit", "nowhere/bern.jsonl", status=2)
    assert "✗ nowhere/bern.jsonl: there is no folder nowhere; make it first" in told
    told = said("study", "run", "study.toml", "--insecure", "--results", "/proc/nobody/results", status=2)
    assert "✗ /proc/nobody" in told
    told = said("study", "run", "study.toml", "--insecure", "--results", "x" * 300, status=2)
    assert "File name too long" in told
    told = said("site", "check", "--study", "study.toml", "--data", "none.csv", "--site", "bern", status=2)
    assert "there is no file none.csv" in told


def test_host_names_in_other_scripts(wards):
    writing.write(study(address="zürich.example:9092"), wards / "study.toml")
    told = said("study", "keys", "--host", "münchen.example")
    assert "xn--zrich-kva.example, xn--mnchen-3ya.example" in told
    made_by.check_server(made_by.Keys(wards / "keys"), load("study.toml").host)
    told = said("study", "keys", "--out", "others", "--host", "no host", status=2)
    assert "--host has 'no host', which is no name or address of a machine" in told


def test_keys_says_what_goes_where(wards):
    told = said("study", "keys", "study.toml", "--host", "study.hospital.org", "--days", "10")
    assert "127.0.0.1" in told
    assert "study.hospital.org" in told
    for site in SITES:
        assert f"keys/{site} goes to {site}" in told
        assert (wards / "keys" / site / f"{site}.key").is_file()
    assert "is there already" in said("study", "keys", "study.toml", status=2)


def test_keys_of_one_site_anew(wards):
    said("study", "keys")
    old = (wards / "keys" / "coordinator" / "sites" / "bern.pub").read_bytes()
    told = said("study", "keys", "--site", "bern")
    assert "keys/bern goes to bern" in told
    assert "genf" not in told
    assert (wards / "keys" / "coordinator" / "sites" / "bern.pub").read_bytes() != old
    assert "'brn' is not a site of the study" in said("study", "keys", "--site", "brn", status=2)


def test_a_passphrase_is_asked_for_and_never_shown(wards):
    told = said("study", "keys", "--ca-passphrase", answers="open sesame\nopen sesame\n")
    assert "sesame" not in told
    assert b"ENCRYPTED" in (wards / "keys" / "coordinator" / "ca.key").read_bytes()


def test_keys_that_have_expired(wards):
    made_by.make(load("study.toml"), wards / "study.toml", wards / "keys", -1)
    told = said("study", "run", "study.toml", status=2)
    assert re.search(r"✗ keys/coordinator/ca.crt expired on \d\d \w+ \d{4}: make new keys with", told)
    told = said("site", "join", "--study", "keys/bern/study.toml", "--data", "bern.csv", status=2)
    assert "✗ keys/bern/ca.crt expired on" in told
    assert not (wards / "results").exists()


def test_check_says_what_would_leave(wards):
    told = said("site", "check", "--study", "study.toml", "--data", "bern.csv", "--site", "bern")
    assert "The table fits the study" in told
    assert "280 rows" in told
    assert "Gram matrix" in told
    assert "nothing was sent" in told
    told = said(
        *("site", "check", "--study", "study.toml", "--data", "bern.csv", "--site", "bern"),
        *("--refuse", "gram,hessian"),
    )
    assert "Gram matrix" not in told
    assert "gradients" in told


def test_check_of_a_table_that_does_not_fit(wards):
    frame = tables()["bern"].rename(columns={"ward": "Ward"})
    frame.loc[:3, "age"] = np.nan
    frame.to_parquet(wards / "bad.parquet")
    told = said("site", "check", "--study", "study.toml", "--data", "bad.parquet", "--site", "bern", status=2)
    assert "does not fit the study, in 2 respects" in told
    assert "column 'age' has 4 missing values" in told
    assert "there is no column 'ward'; closest: 'Ward'" in told
    joined = said(
        "site",
        "join",
        "--study",
        "study.toml",
        "--data",
        "bad.parquet",
        "--site",
        "bern",
        "--insecure",
        status=2,
    )
    assert "there is no column 'ward'" in joined


def test_a_check_in_which_one_site_alone_cannot_be_fitted(wards):
    writing.write(study("died", "logistic", 0.01), wards / "study.toml")
    tables()["bern"].assign(died="no").to_csv(wards / "bern.csv", index=False)
    told = said("site", "check", "--study", "study.toml", "--data", "bern.csv", "--site", "bern")
    assert "The rehearsal went no further, with this site alone: logistic needs two classes" in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["site", "check", "--study", "study.toml", "--data", "bern.csv"], "which site is this?"),
        (
            ["site", "check", "--study", "study.toml", "--data", "bern.csv", "--site", "ber"],
            "closest: 'bern'",
        ),
        (
            [
                "site",
                "check",
                "--study",
                "study.toml",
                "--data",
                "bern.csv",
                "--site",
                "bern",
                "--refuse",
                "grm",
            ],
            "--refuse knows no statistic 'grm'; closest: 'gram'",
        ),
        (["site", "check", "--study", "none.toml", "--data", "bern.csv"], "there is no file none.toml"),
        (["site", "join", "--study", "study.toml", "--data", "bern.csv"], "--key is needed"),
        (["study", "run", "study.toml"], "`unpooled study keys` makes the keys"),
    ],
)
def test_mistakes(wards, arguments, told):
    assert told in said(*arguments, status=2)


def test_insecure_is_for_loopback_only(wards):
    writing.write(study(address="study.hospital.org:9092"), wards / "study.toml")
    told = said("study", "run", "study.toml", "--insecure", status=2)
    assert "--insecure is for loopback addresses" in told
    arguments = [
        "site",
        "join",
        "--study",
        "study.toml",
        "--data",
        "bern.csv",
        "--site",
        "bern",
        "--insecure",
    ]
    assert "--insecure is for loopback addresses" in said(*arguments, status=2)


@pytest.mark.parametrize("bind", ["0.0.0.0", "::", "192.0.2.7", ""])
def test_insecure_listens_on_loopback_only(wards, bind):
    told = said("study", "run", "study.toml", "--insecure", "--bind", bind, status=2)
    assert f"--insecure is for loopback addresses such as 127.0.0.1, and --bind is {bind!r}" in told
    assert not (wards / "results").exists()


def test_where_nobody_can_listen(wards):
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        writing.write(study(address=f"127.0.0.1:{port}"), wards / "study.toml")
        told = said("study", "run", "study.toml", "--insecure", status=2)
        assert f"✗ port {port} is in use on this machine: another study may be running" in told
    said("study", "keys", "study.toml")
    told = said("study", "run", "study.toml", "--bind", "192.0.2.7", status=2)  # nobody's, for examples
    assert f"✗ cannot listen on 192.0.2.7:{port}: Cannot assign requested address" in told


def test_results_are_not_written_over(wards):
    (wards / "results").mkdir()
    (wards / "results" / "result.json").write_text(json.dumps({}))
    assert "is there already" in said("study", "run", "study.toml", "--insecure", status=2)


def test_help_does_not_import_what_a_study_needs():
    code = (
        "import sys, unpooled.cli; print(sorted(m for m in sys.modules if m.startswith('unpooled.study.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['unpooled.study.commands', 'unpooled.study.site_commands']"


def test_files_where_folders_are_needed(wards):
    given = ("--sites", "a,b", "--target", "cost", "--yes")
    assert "is a folder" in said("study", "init", *given, wards, status=2)
    keys = said("study", "keys", "study.toml", "--out", "bern.csv", status=2)
    assert keys.startswith("✗")
    assert "bern.csv" in keys
    run = said("study", "run", "study.toml", "--insecure", "--results", "bern.csv/x", status=2)
    assert "bern.csv" in run
    assert "Not a directory" in run


def test_names_and_paths_are_no_markup(tmp_path, monkeypatch):
    """A study may be called what rich would take for a style."""
    monkeypatch.chdir(tmp_path)
    writing.write(study(name="s[/]"), tmp_path / "s[bold].toml")
    told = said("study", "keys", "s[bold].toml", "--out", "k[red]")
    assert "Keys of the study s[/]" in told
    assert "k[red]/coordinator stays here" in told
    assert "k[red]/bern goes to bern, over a confidential channel" in told
    assert "unpooled study run s[bold].toml --keys k[red]" in told
    options = ("--sites", "a,b", "--target", "y", "--features", "u", "--yes")
    assert "unpooled study keys t[red].toml" in said("study", "init", "t[red].toml", *options)


def test_one_sites_key_has_no_days_of_its_own(wards):
    said("study", "keys")
    told = said("study", "keys", "--site", "bern", "--days", "9", status=2)
    assert "--host, --days and --ca-passphrase are for all keys" in told
    told = said("study", "keys", "--site", "bern")
    assert "A new key of bern; the old one is not accepted from the next start on" in told


def test_init_with_a_table_of_another_kind(tmp_path, monkeypatch):
    """No study.toml is there yet, in which its owner could say so."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bern.csv").write_text("age;y\n1;2\n3;4\n")
    options = ("--sites", "a,b", "--target", "y", "--yes", "--data", "bern.csv")
    told = said("study", "init", *options, status=2)
    assert "is the separator ';'?" in told
    assert "give --features instead of --data" in told
    assert "in this site's study.toml" not in told
    assert (
        'data.csv = { separator = ";" } in the file that is written then lets sites use such a table' in told
    )
