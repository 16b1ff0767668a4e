"""What a site's owner can see and stop: the audit with its questions, approval, the columns in use."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

from tests.study.sites import SITES, desks, study, tables
from tests.study.test_commands import said, wards  # noqa: F401  # a fixture
from tests.study.villain import Villain
from unpooled.engines.remote.messages import Direct, Reply, Request
from unpooled.study import site_commands
from unpooled.study.approval import Approval
from unpooled.study.audit import Audit
from unpooled.study.config import StoppedError, StudyError, load, parse
from unpooled.study.coordinator import run_study
from unpooled.study.desk import StudyDesk


def lines_of(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("values", [True, False])
def test_the_audit_has_the_questions(files, tmp_path, values):
    asked = study("died", "logistic", 0.01)
    log = Audit(tmp_path / "bern.jsonl", asked.name, "bern", values=values)
    exchanged = []

    class Reading(Direct):
        def exchange(self, requests):
            exchanged.extend(request for site, request in requests.items() if site == "bern")
            return super().exchange(requests)

    at = desks(asked, files) | {"bern": StudyDesk(asked, "bern", files["whole"]["bern"], audit=log)}
    run_study(asked, Reading(at), tmp_path / "results")
    lines = lines_of(log.path)
    assert log.path.stat().st_mode & 0o777 == 0o600
    assert [line["kind"] for line in lines] == [request.kind for request in exchanged]
    points = 0
    for line, request in zip(lines, exchanged, strict=True):
        assert {each["name"] for each in line["asked"]["arrays"]} == set(request.arrays)
        for each in line["asked"]["arrays"]:
            assert each["shape"] == list(request.arrays[each["name"]].shape)
            if values:
                np.testing.assert_array_equal(each["values"], request.arrays[each["name"]])
            points += each["name"].endswith("/w")
    assert points > 2
    agreed = [line for line in lines if "agreement" in line["asked"]["said"].get("study", {})]
    assert len(agreed) == 1  # once is enough
    assert agreed[0]["asked"]["said"]["study"]["agreement"]["features"][0] == "age"


def test_a_refused_question_is_in_the_audit(tmp_path):
    bern = Villain(tmp_path)
    bern.desk.audit = Audit(tmp_path / "bern.jsonl", "wards", "bern")
    bern.ask({"rows": np.arange(3)})
    [line] = lines_of(tmp_path / "bern.jsonl")
    assert "the coordinator asked for 'rows'" in line["said"]["refused"]
    assert line["arrays"] == []
    assert {"name": "0/rows", "shape": [3], "dtype": "int64"} in line["asked"]["arrays"]


def test_the_audit_follows_no_link(tmp_path):
    (tmp_path / "precious").write_text("rows")
    (tmp_path / "audit.jsonl").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="symbolic"):
        Audit(tmp_path / "audit.jsonl", "wards", "bern")
    assert (tmp_path / "precious").read_text() == "rows"


def approving(answers, **options):
    questions, shown, left = [], [], list(answers)

    def ask(question):
        questions.append(question)
        return left.pop(0)

    return Approval(ask, shown.append, **options), questions, shown


def test_approval_of_each_kind_of_answer(files, tmp_path):
    asked = study("died", "logistic", 0.01)
    approve, questions, shown = approving(["values", "y", "yes", "yes", "yes", "yes", "yes"])
    at = desks(asked, files)
    at["bern"] = StudyDesk(asked, "bern", files["whole"]["bern"], approve=approve)
    result = run_study(asked, Direct(at), tmp_path / "results")
    assert result.converged
    assert len(questions) < at["bern"].answers  # a kind is asked about once
    assert questions[0].startswith("agreement: names and types of 11 columns")
    assert re.search(r"\(\d[\d.]* [kM]?B\)\. Answers of this kind, now and later: send\?", questions[0])
    assert any("Hessians" in question for question in questions)
    assert any("rows: 280" in text for text in shown)


def test_an_answer_that_is_not_approved_stays(files, tmp_path):
    asked = study("died", "logistic", 0.01)
    approve, questions, _ = approving(["y", "y", "no"], each=True)
    at = desks(asked, files)
    log = Audit(tmp_path / "bern.jsonl", asked.name, "bern")
    at["bern"] = StudyDesk(asked, "bern", files["whole"]["bern"], approve=approve, audit=log)
    with pytest.raises(StoppedError, match=r"bern: its owner does not approve of this answer to 'ask'"):
        run_study(asked, Direct(at), tmp_path / "results")
    assert len(questions) == 3
    last = next(line for line in reversed(lines_of(log.path)) if line["kind"] == "ask")
    assert last["arrays"] == []


def test_approval_needs_a_terminal(wards):  # noqa: F811
    options = ("--study", "study.toml", "--data", "bern.csv", "--site", "bern", "--insecure", "--approve")
    words = "asks at a terminal, and this command has none: join from a terminal, or without it"
    assert f"--approve {words}" in said("site", "join", *options, status=2)
    assert f"--approve-each {words}" in said("site", "join", *options[:-1], "--approve-each", status=2)
    folder = wards / "none" / "audit.jsonl"
    told = said("site", "join", *options[:-1], "--audit", folder, status=2)
    assert "there is no folder" in told


@pytest.mark.parametrize("error", [KeyboardInterrupt, EOFError])
def test_to_interrupt_the_question_stops_the_site(monkeypatch, error):
    """It is no answer: "no" would leave the site in the study, at the next question."""
    terminal = SimpleNamespace(isatty=lambda: True)
    monkeypatch.setattr("sys.stdin", terminal)

    def typed(*words, **more):
        raise error

    monkeypatch.setattr("click.termui.visible_prompt_func", typed)
    approve = site_commands._approval(each=False)
    with pytest.raises(KeyboardInterrupt):
        approve(Request("ask", {}, {}), Reply({}, {"0/0/loss": np.array(1.0)}))


@pytest.mark.parametrize("more", [("--audit", "mine.jsonl"), ("--audit-values",)])
def test_to_log_and_not_to_log_is_refused(wards, more):  # noqa: F811
    options = ("--study", "study.toml", "--data", "bern.csv", "--site", "bern", "--insecure", "--no-audit")
    assert "--no-audit logs nothing" in said("site", "join", *options, *more, status=2)
    assert not (wards / "mine.jsonl").exists()


def test_check_lists_columns_and_warns_of_identifiers(wards):  # noqa: F811
    frame = tables()["bern"]
    frame["patient_id"] = np.arange(280)
    frame["case"] = [f"c{i}" for i in range(280)]
    frame["lupus"] = (np.arange(280) == 3).astype(int)
    frame["secret"] = 1.0
    frame.to_csv(wards / "bern.csv", index=False)
    text = (wards / "study.toml").read_text("utf-8")
    more = text.replace('features = ["age",', 'features = ["age", "patient_id", "case", "lupus",')
    more = more.replace("categorical = { ", 'categorical = { case = "agree", ')
    (wards / "study.toml").write_text(more, "utf-8")
    told = said("site", "check", "--study", "study.toml", "--data", "bern.csv", "--site", "bern")
    assert "target pressure; 13 features:" in told
    assert "age, patient_id, case, lupus, creatinine, smoker" in told
    assert "column 'patient_id' looks like an identifier (its name says so)" in told
    assert "column 'case' looks like an identifier (each row has another value)" in told
    assert "column 'age' looks" not in told
    assert "column 'lupus' will be left out: fewer than 10 rows stand out in it here" in told
    assert "column 'case': levels 'c0' (1 row), 'c1' (1 row)," in told
    assert "and 275 more count as 'other', because levels of fewer than 10 rows are merged" in told
    assert "not used: 'died', 'visits', 'stage', 'secret'" in told
    assert "at most 700 requests of 1 question" in told


def test_init_writes_the_list_of_features(wards):  # noqa: F811
    frame = tables()["bern"].assign(patient_id=np.arange(280))
    frame.to_csv(wards / "bern.csv", index=False)
    options = ("--sites", "a,b", "--target", "pressure", "--categorical", "smoker", "--yes")
    assert "Features: --yes has no default for it" in said("study", "init", *options, status=2)
    told = said("study", "init", *options, "--data", "bern.csv")
    assert "'patient_id' is not among the features: it looks like an identifier (its name says so)" in told
    asked = load("study.toml")
    assert asked.features == tuple(name for name in frame if name not in ("pressure", "patient_id"))
    with pytest.raises(StudyError, match=r"data.features is missing"):
        parse({"name": "a", "sites": list(SITES), "data": {"target": "y"}, "model": {"kind": "lasso"}})
