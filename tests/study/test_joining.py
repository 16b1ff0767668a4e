"""What a site's terminal shows while it takes part: the real command, with a coordinator in this process."""

import re

import pytest
from typer.testing import CliRunner

from tests.study.sites import desks, study, tables
from unpooled.cli import app
from unpooled.engines.remote.messages import Direct
from unpooled.study import joining, writing
from unpooled.study.config import StudyError
from unpooled.study.coordinator import run_study


class Coordinator:
    """In a node's place: a study begins when the site has joined, and asks its desk."""

    def __init__(self, asked, others, folder):
        self.asked, self.others, self.folder = asked, others, folder
        self.error = None

    def __call__(self, fleet, site, desk, authority, say):
        self.site, self.desk = site, desk
        return self

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def linger(self, seconds):
        pass

    def step(self):
        try:
            run_study(self.asked, Direct({**self.others, self.site: self.desk}), self.folder)
        except StudyError as error:
            self.error = str(error)


@pytest.fixture
def join(files, tmp_path, monkeypatch):
    """Let Bern join by the command; what its terminal shows, and what the coordinator says."""

    def joined(here, there, *options, status=0):
        monkeypatch.chdir(tmp_path)
        coordinator = Coordinator(there, desks(there, files), tmp_path / "results")
        monkeypatch.setattr(joining, "Node", coordinator)
        writing.write(here, "study.toml")
        tables()["bern"].to_csv("bern.csv", index=False)
        given = ["--study", "study.toml", "--data", "bern.csv", "--site", "bern", "--insecure"]
        result = CliRunner().invoke(app, ["site", "join", *given, *options])
        assert result.exit_code == status, result.output
        return result.output, coordinator.error

    return joined


def test_a_line_for_each_answer_as_it_leaves(join):
    shown, error = join(study(), study(), "--audit", "bern.jsonl")
    assert error is None
    assert "connected to 127.0.0.1:9092 as bern" in shown
    lines = re.findall(r"^  \d\d:\d\d:\d\d (\w+): (.*) \(([\d.]+ \w?B)\)$", shown, re.MULTILINE)
    assert [name for name, _, _ in lines] == ["agreement", "summaries", "fit"]
    assert lines[0][1].startswith("names and types of 11 columns, the number of rows, levels of smoker")
    assert "means" in lines[1][1]
    assert "Gram matrix" in lines[2][1]
    assert "✓ The study is over: wards: lasso of pressure" in shown
    assert "What left this site is in bern.jsonl (4 answers)." in shown


def test_a_study_that_cannot_be_is_over_with_its_reason(join):
    shown, error = join(study(), study(), "--refuse", "gradient", status=2)
    assert error == "bern does not send gradient, without which nothing can be fitted"
    assert f"✗ the study is over: it ended without a result: {error}" in shown


def test_a_site_that_differs_is_told_in_what(join):
    shown, error = join(study(lam=0.3), study(), status=2)
    differs = "its study.toml is another one: model.lambda is 0.3 here and 0.1 at the coordinator"
    assert re.search(rf"^  \d\d:\d\d:\d\d refused: {re.escape(differs)}$", shown, re.MULTILINE)
    assert f"✗ this site does not fit the study:\n  {differs}\n" in shown
    assert error.startswith(f"bern: {differs}; 3 of at least 4 sites are left")
