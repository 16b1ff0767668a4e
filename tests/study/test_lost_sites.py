"""Sites that are lost, send what cannot be used or differ; and studies that are stopped and resumed."""

import io
import json
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from tests.full_disks import full
from tests.study.sites import desks, study
from unpooled.engines.remote.messages import Direct, Failure, Reply
from unpooled.study.agreement import DisagreementError
from unpooled.study.board import Board
from unpooled.study.config import StoppedError, StudyError
from unpooled.study.coordinator import run_study
from unpooled.study.desk import StudyDesk
from unpooled.study.events import EventFile, Follower


class Failing(Direct):
    """A transport on which a site stops answering at some exchange, and may come back."""

    def __init__(self, desks, site, at, back=10**9):
        super().__init__(desks)
        self.site, self.at, self.back, self.count = site, at, back, 0

    def exchange(self, requests):
        self.count += 1
        replies = super().exchange(requests)
        if self.at <= self.count < self.back and self.site in replies:
            replies[self.site] = Failure("is not connected")
        return replies


def noting(notes):
    """A watch that keeps what is noted."""

    def watch(event, data):
        if event == "note":
            notes.append(data["text"])

    return watch


def test_a_lost_site_is_left_out_where_enough_remain(files, tmp_path):
    asked = study(limits={"minimum_sites": 3})
    seen = []
    result = run_study(
        asked, Failing(desks(asked, files), "genf", 3), tmp_path, watch=lambda event, data: seen.append(event)
    )
    three = study(sites=["basel", "bern", "zurich"])
    known = run_study(three, Direct(desks(three, files)), tmp_path / "three")
    np.testing.assert_array_equal(result.coef, known.coef)
    assert result.notes[0] == "genf was left out: is not connected."
    assert list(result.rows) == ["basel", "bern", "zurich"]
    assert [event for event in seen if event in ("lost", "left out")] == ["left out"]


def test_a_site_that_comes_back_in_time_is_waited_for(files, tmp_path):
    asked = study(limits={"grace": 30})
    seen = []
    flaky = Failing(desks(asked, files), "genf", 3, 5)
    result = run_study(asked, flaky, tmp_path, watch=lambda event, data: seen.append(event))
    known = run_study(asked, Direct(desks(asked, files)), tmp_path / "known")
    np.testing.assert_array_equal(result.coef, known.coef)
    assert "lost" in seen
    assert "left out" not in seen


class Spoiling(Direct):
    """A transport on which one site's numbers of a kind are not finite, or fewer than they should be."""

    def __init__(self, desks, site, kind, spoil):
        super().__init__(desks)
        self.site, self.kind, self.spoil = site, kind, spoil

    def exchange(self, requests):
        replies = super().exchange(requests)
        if requests and next(iter(requests.values())).kind == self.kind and self.site in replies:
            spec, arrays = replies[self.site]
            replies[self.site] = Reply(spec, {name: self.spoil(array) for name, array in arrays.items()})
        return replies


SPOILT = {
    "NaN": (lambda array: np.full(array.shape, np.nan), r"genf: its \w+ holds NaN"),
    "shape": (lambda array: np.ones((2, 3, 4)), r"genf: its \w+ has shape \(2, 3, 4\)"),
}


@pytest.mark.parametrize("kind", SPOILT)
def test_a_site_that_sends_what_cannot_be_used_is_named_and_left_out(files, tmp_path, kind):
    spoil, words = SPOILT[kind]
    asked = study(limits={"minimum_sites": 3})
    at = desks(asked, files)
    result = run_study(asked, Spoiling(at, "genf", "ask", spoil), tmp_path / "left out")
    assert list(result.rows) == ["basel", "bern", "zurich"]
    assert re.match(words.replace("genf:", "genf was left out:"), result.notes[0])
    first, last = at["genf"].told
    assert first["unfit"][0].startswith("its ")
    assert last["done"].startswith("this site was left out: its ")
    asked = study()
    with pytest.raises(StoppedError, match=rf"{words}.*; 3 of at least 4 sites are left"):
        run_study(asked, Spoiling(desks(asked, files), "genf", "ask", spoil), tmp_path / "stopped")
    known = run_study(asked, Direct(desks(asked, files)), tmp_path / "known")
    mended = run_study(asked, Direct(desks(asked, files)), tmp_path / "stopped", resume=True)
    np.testing.assert_array_equal(mended.coef, known.coef)


@pytest.mark.slow
def test_a_round_with_too_few_sites_stops_and_is_resumed(files, tmp_path):
    asked = study(solver={"method": "fast_fedda", "rounds": 4, "local_steps": 5, "batch_size": 16})
    known = run_study(asked, Direct(desks(asked, files)), tmp_path / "known")
    with pytest.raises(
        StoppedError,
        match=r"only 3 clients took part; 4 are required .client 'genf': is not",
    ):
        run_study(asked, Failing(desks(asked, files), "genf", 20), tmp_path / "results")
    resumed = run_study(asked, Direct(desks(asked, files)), tmp_path / "results", resume=True)
    np.testing.assert_array_equal(resumed.coef, known.coef)


@pytest.mark.slow
def test_a_round_goes_on_without_a_site_that_is_slow(files, tmp_path):
    """As a transport tells it that waits ``limits.grace`` seconds once ``limits.minimum_sites`` are there."""
    solver = {"method": "fast_fedda", "rounds": 2, "local_steps": 5, "batch_size": 16}
    asked = study(solver=solver, limits={"minimum_sites": 3, "grace": 5})

    class Slow(Direct):
        def exchange(self, requests):
            replies = super().exchange(requests)
            if "genf" in requests and requests["genf"].kind == "train":
                watch("waiting", {"sites": ["genf"], "seconds": 30.2})
                replies["genf"] = Failure("did not answer within 35 s")
            return replies

    text = io.StringIO()
    with Board(Console(file=text, width=100), asked.sites) as board:
        watch = board.see
        result = run_study(asked, Slow(desks(asked, files)), tmp_path, watch=watch)
    shown = text.getvalue()
    assert "  no answer from genf so far, after 30 s\n" in shown
    assert shown.count("  genf did not answer within 35 s; going on\n") == 2
    assert list(result.rows) == ["basel", "bern", "genf", "zurich"]  # who may be back in the next round
    assert any("'genf' was left out of 2 rounds" in note for note in result.notes), result.notes


@pytest.mark.slow
def test_an_upload_beyond_the_norm_bound_does_not_count(files, tmp_path):
    solver = {"method": "fast_fedda", "rounds": 2, "local_steps": 5, "batch_size": 16}
    asked = study(solver=solver, limits={"minimum_sites": 3, "norm_bound": 1e6})
    known = run_study(asked, Direct(desks(asked, files)), tmp_path / "known")
    assert not any("left out" in note for note in known.notes)

    def large(array):
        return array * 1e12 if array.dtype.kind == "f" else array

    result = run_study(asked, Spoiling(desks(asked, files), "genf", "train", large), tmp_path / "large")
    why = r"its upload has the norm [\d.e+]+, above 1e\+06"
    assert any("'genf' was left out of 2 rounds" in note for note in result.notes), result.notes
    asked = study(solver=solver, limits={"norm_bound": 1e6})
    with pytest.raises(
        StoppedError, match=rf"only 3 clients took part; 4 are required .client 'genf': {why}"
    ):
        run_study(asked, Spoiling(desks(asked, files), "genf", "train", large), tmp_path / "stopped")


@pytest.mark.parametrize("damage", [None, "cut", "nonsense"])
def test_a_stopped_study_goes_on_to_the_same_bits(files, tmp_path, damage):
    asked = study("died", "logistic", 0.01)
    known = run_study(asked, Direct(desks(asked, files)), tmp_path / "known")
    with pytest.raises(StoppedError, match="genf: is not connected; 3 of at least 4 sites are left"):
        run_study(asked, Failing(desks(asked, files), "genf", 5), tmp_path / "results")
    kept = sorted((tmp_path / "results" / "checkpoint").glob("*.npz"))
    assert len(kept) == 4
    with pytest.raises(StudyError, match="holds a study that was not finished: --resume goes on"):
        run_study(asked, Direct(desks(asked, files)), tmp_path / "results")
    if damage:
        kept[-1].write_bytes(kept[-1].read_bytes()[:100] if damage == "cut" else b"nonsense")
    again, notes = Failing(desks(asked, files), "nobody", 1), []
    result = run_study(asked, again, tmp_path / "results", resume=True, watch=noting(notes))
    np.testing.assert_array_equal(result.coef, known.coef)
    assert result.intercept == known.intercept
    assert result.ledger == known.ledger
    straight = Failing(desks(asked, files), "nobody", 1)
    run_study(asked, straight, tmp_path / "straight")
    assert again.count == straight.count - (3 if damage else 4)
    assert any("is damaged: its answers are asked for again" in note for note in notes) == bool(damage)


def test_what_cannot_be_resumed(files, tmp_path):
    asked = study("died", "logistic", 0.01)
    with pytest.raises(StudyError, match="there is nothing to resume"):
        run_study(asked, Direct(desks(asked, files)), tmp_path, resume=True)
    with pytest.raises(StoppedError):
        run_study(asked, Failing(desks(asked, files), "genf", 5), tmp_path)
    other = study("died", "logistic", 0.02)
    with pytest.raises(
        StudyError, match=r"is another one: model.lambda is 0.02 here and 0.01 in the checkpoint"
    ):
        run_study(other, Direct(desks(other, files)), tmp_path, resume=True)
    state = tmp_path / "checkpoint" / "state.json"
    whole = json.loads(state.read_text("utf-8"))
    lacking = [json.dumps({name: each for name, each in whole.items() if name != gone}) for gone in whole]
    wrong = [json.dumps({**whole, name: 7}) for name in whole]
    for damaged in ("{", "[]", "7", "null", '"x"', "{}", *lacking, *wrong):
        state.write_text(damaged)
        with pytest.raises(StudyError, match=r"state.json is damaged: begin anew"):
            run_study(asked, Direct(desks(asked, files)), tmp_path, resume=True)


def test_a_disk_that_is_full_costs_the_checkpoint_only(files, tmp_path):
    asked, notes = study(), []
    known = run_study(asked, Direct(desks(asked, files)), tmp_path / "known")
    checkpoint = tmp_path / "results" / "checkpoint"
    with full(lambda path: path.name.startswith(".0")):
        result = run_study(asked, Direct(desks(asked, files)), tmp_path / "results", watch=noting(notes))
    np.testing.assert_array_equal(result.coef, known.coef)
    assert len(notes) == 1
    assert "cannot be written (No space left on device): the study goes on" in notes[0]
    assert not checkpoint.exists()


def test_a_site_that_differs_is_told_and_named(files, tmp_path):
    asked = study()
    at = desks(asked, files)
    at["bern"] = StudyDesk(study(lam=0.3), "bern", files["whole"]["bern"])
    with pytest.raises(StoppedError, match=r"bern: its study.toml is another one: model.lambda is 0.3 here"):
        run_study(asked, Direct(at), tmp_path / "one")
    assert "model.lambda is 0.3 here and 0.1 at the coordinator" in at["bern"].told[0]["unfit"][0]
    at = desks(asked, files, "holes")
    with pytest.raises(DisagreementError, match="basel: column 'creatinine' has missing values"):
        run_study(asked, Direct(at), tmp_path / "two")
    assert at["bern"].told == [{"unfit": ["column 'creatinine' has missing values"]}]
    assert not (tmp_path / "two" / "checkpoint").exists()


def test_all_are_told_of_a_study_that_ends_without_a_result(files, tmp_path):
    asked = study("died", "multinomial", 0.1)
    at = desks(asked, files)
    with pytest.raises(StudyError, match="multinomial needs three classes or more"):
        run_study(asked, Direct(at), tmp_path)
    for desk in at.values():
        assert "it ended without a result: multinomial needs three classes" in desk.told[0]["failed"]


@pytest.mark.slow
def test_too_few_for_a_round_is_a_stop_that_can_be_resumed(files, tmp_path):
    solver = {"method": "fast_fedda", "rounds": 4, "local_steps": 5, "batch_size": 16}
    asked = study(solver=solver)
    known = run_study(asked, Direct(desks(asked, files)), tmp_path / "known")
    seen = []
    counting = Failing(desks(asked, files), "nobody", 1)
    run_study(asked, counting, tmp_path / "count")
    with pytest.raises(StoppedError, match="only 3 clients took part; 4 are required"):
        run_study(asked, Failing(desks(asked, files), "genf", counting.count - 3), tmp_path / "results")

    def watch(event, data):
        seen.append(event)

    again = run_study(asked, Direct(desks(asked, files)), tmp_path / "results", resume=True, watch=watch)
    np.testing.assert_array_equal(again.coef, known.coef)
    assert 0 < seen.count("asked") < counting.count


def test_sites_that_do_not_come_are_named(files, tmp_path):
    asked = study(limits={"join_timeout": 1})
    at = desks(asked, files)
    del at["genf"]
    with pytest.raises(StudyError, match=r"3 of at least 4 sites joined within 1 s .* missing: genf"):
        run_study(asked, Direct(at), tmp_path)


def test_a_coordinator_killed_at_the_very_end_finishes_from_disk(files, tmp_path, monkeypatch):
    """The sites were told that the study is done, and have gone."""
    asked = study("died", "logistic", 0.01, limits={"grace": 30})
    known = run_study(asked, Direct(desks(asked, files)), tmp_path / "known")

    class Killed(Direct):
        def exchange(self, requests):
            replies = super().exchange(requests)
            if next(iter(requests.values())).kind == "tell":
                raise KeyboardInterrupt
            return replies

    with pytest.raises(KeyboardInterrupt):
        run_study(asked, Killed(desks(asked, files)), tmp_path / "early")
    back = desks(asked, files)  # who were not told are waited for, and are told
    result = run_study(asked, Direct(back), tmp_path / "early", resume=True)
    np.testing.assert_array_equal(result.coef, known.coef)
    assert all("done" in desk.told[0] for desk in back.values())

    def watch(event, data):
        if event == "done":
            raise KeyboardInterrupt

    kept = tmp_path / "kept"
    monkeypatch.setattr("unpooled.study.journal.Journal.delete", lambda journal: None)  # killed before it
    with pytest.raises(KeyboardInterrupt):
        run_study(asked, Direct(desks(asked, files)), kept, watch=watch)
    monkeypatch.undo()
    again = run_study(asked, Direct({}), kept, resume=True)
    np.testing.assert_array_equal(again.coef, known.coef)
    assert not (kept / "checkpoint").exists()


def test_a_resumed_study_waits_for_sites_that_it_has_to_ask(files, tmp_path):
    asked = study(limits={"join_timeout": 1})
    with pytest.raises(StoppedError):
        run_study(asked, Failing(desks(asked, files), "genf", 3), tmp_path)
    at = desks(asked, files)
    del at["genf"]
    with pytest.raises(StoppedError, match=r"3 of at least 4 sites joined within 1 s .* missing: genf"):
        run_study(asked, Direct(at), tmp_path, resume=True)
    known = run_study(asked, Direct(desks(asked, files)), tmp_path / "known")
    result = run_study(asked, Direct(desks(asked, files)), tmp_path, resume=True)
    np.testing.assert_array_equal(result.coef, known.coef)


@pytest.mark.parametrize("elsewhere", [True, False])
def test_a_disk_that_is_full_at_the_end_loses_no_result(files, tmp_path, monkeypatch, elsewhere):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "spare"))
    (tmp_path / "spare").mkdir()
    asked, seen = study(), {}
    results = tmp_path / "results"

    def is_full(path):
        return path.parent == results or (not elsewhere and path.parent.parent == tmp_path / "spare")

    with full(is_full):
        result = run_study(asked, Direct(desks(asked, files)), results, watch=seen.__setitem__)
    assert seen["done"]["summary"] == result.summary()
    if elsewhere:
        [place] = (tmp_path / "spare").iterdir()
        assert seen["done"]["folder"] == str(place)
        assert f"the results are in {place}" in seen["note"]["text"]
        assert (place / "coefficients.csv").read_text() == result.csv()
        assert place.stat().st_mode & 0o077 == 0
        return
    assert seen["done"]["csv"] == result.csv()
    assert "cannot be written to" in seen["note"]["text"]
    again = run_study(asked, Direct({}), results, resume=True)  # there is room again; no site is needed
    np.testing.assert_array_equal(again.coef, result.coef)
    assert (results / "coefficients.csv").read_text() == result.csv()


def test_events_go_elsewhere_when_their_disk_is_full(tmp_path):
    events = EventFile(Path("/dev/full"), tmp_path / "spare")
    events("note", {"text": "a"})
    events("done", {"summary": "b"})
    follower = Follower(tmp_path / "none", tmp_path / "spare")
    assert [each["event"] for each in follower.new()] == ["note", "done"]
    assert follower.new() == []
