"""Sites are given the result where the study says so, and only then; what they write is made plain."""

import csv
import json

import pytest

from tests.study.sites import desks, study
from tests.study.test_terminal_safety import EVIL, is_clean
from unpooled.engines.remote.messages import Direct, Failure, Request
from unpooled.study.config import StudyError
from unpooled.study.coordinator import run_study
from unpooled.study.envelope import Envelope
from unpooled.study.sharing import RESULTS, keep, summary_of


@pytest.mark.parametrize(
    ("arguments", "settings"),
    [
        ((), {}),
        (("stage", "multinomial", 0.01), {}),
        ((), {"model": {"intercept": "sites"}}),
        (("pressure", "lasso", "path"), {"model": {"n_lambdas": 5}}),
    ],
)
def test_a_site_writes_what_the_coordinator_writes(files, tmp_path, arguments, settings):
    asked = study(*arguments, share_results=True, **settings)
    at = desks(asked, files)
    run_study(asked, Direct(at), tmp_path / "coordinator")
    for site, desk in at.items():
        told = json.loads(json.dumps(desk.told[-1]))  # as it crosses
        for path in keep(told, tmp_path / site):
            assert path.read_bytes() == (tmp_path / "coordinator" / path.name).read_bytes()
        assert sorted(path.name for path in (tmp_path / site).iterdir()) == sorted(
            path.name for path in (tmp_path / "coordinator").iterdir()
        )
        assert (tmp_path / site / "lambdas.csv").exists() == (asked.lam == "path")
        assert summary_of(told) == (tmp_path / "coordinator" / "summary.txt").read_text("utf-8")


def test_otherwise_a_site_is_told_the_headline(files, tmp_path):
    asked = study()
    at = desks(asked, files)
    run_study(asked, Direct(at), tmp_path / "coordinator")
    for desk in at.values():
        assert desk.told == [{"done": "wards: lasso of pressure"}]
        assert keep(desk.told[-1], tmp_path / "none") == []
        assert summary_of(desk.told[-1]) == ""
    assert not (tmp_path / "none").exists()


def test_a_site_that_was_left_out_has_no_part_in_the_result(files, tmp_path):
    asked = study(share_results=True, limits={"minimum_sites": 3, "grace": 0})

    class Losing(Direct):
        def exchange(self, requests):
            lost = {"genf": Failure("is gone")} if requests["bern"].kind == "ask" else {}
            return {**super().exchange(requests), **lost}

    at = desks(asked, files)
    run_study(asked, Losing(at), tmp_path)
    assert RESULTS in at["bern"].told[-1]
    assert at["genf"].told[-1] == {"done": "this site was left out: is gone"}


def tell(desk, asked, words):
    desk.handle(Envelope.of(asked).around(Request("tell", words, {})))
    return desk.told[-1]


def test_results_of_a_coordinator_that_means_harm(files, tmp_path):
    asked = study(share_results=True)
    term = {"term": "=1+1", "feature": EVIL, "level": "@x", "label": "", "value": -0.5}
    words = {"done": EVIL, RESULTS: {"result": {"coefficients": [term], "name": EVIL}, "summary": EVIL}}
    told = tell(desks(asked, files)["bern"], asked, words)
    for path in keep(told, tmp_path):
        assert is_clean(path.read_text("utf-8"))
    rows = list(csv.reader((tmp_path / "coefficients.csv").read_text("utf-8").splitlines()))
    assert [row[0] for row in rows] == ["term", "'=1+1"]
    assert rows[1][-1] == "-0.5"
    assert is_clean(summary_of(told))
    wrong_ones = [3, {}, {"result": {"coefficients": [{"term": "x"}]}}, {"result": {"coefficients": 7}}]
    curves = [7, [1], {"a": 7}, {"a": ["=1"]}, {"a": [1.0], "b": []}]
    wrong_ones += [{"result": {"coefficients": [term], "curve": curve}} for curve in curves]
    for wrong in wrong_ones:
        with pytest.raises(StudyError, match="the coordinator's results cannot be read"):
            keep({RESULTS: wrong}, tmp_path / "wrong")
    assert not (tmp_path / "wrong").exists()


def test_a_curve_of_a_coordinator_that_means_harm(tmp_path):
    curve = {"=1+1": [0.5], EVIL: ["inf"]}
    keep({RESULTS: {"result": {"coefficients": [], "curve": curve}}}, tmp_path)
    text = (tmp_path / "lambdas.csv").read_text("utf-8")
    assert is_clean(text)
    [names, values] = csv.reader(text.splitlines())
    assert names[0] == "'=1+1"
    assert values == ["0.5", "inf"]


def test_a_site_whose_study_gives_no_results_takes_none(files):
    asked = study()
    told = tell(desks(asked, files)["bern"], asked, {"done": "x", RESULTS: {"summary": "y"}})
    assert told == {"done": "x"}
