"""What peers say is text: no escape reaches a terminal, a log or a summary, and no cell starts a formula."""

import csv
import io
import json
import logging

import numpy as np
import pytest
from rich.console import Console

from tests.study.sites import desks, study, tables
from tests.study.sites import settings as given
from unpooled._wording import printable
from unpooled.engines.remote.messages import Direct, Failure, Reply, Request
from unpooled.study import joining, showing, site_commands, table, writing
from unpooled.study.board import Board
from unpooled.study.config import StoppedError, StudyError, load, parse
from unpooled.study.coordinator import run_study
from unpooled.study.desk import StudyDesk
from unpooled.study.envelope import Envelope
from unpooled.study.patience import REFUSED

EVIL = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202ered\r\nok"
CONTROL = ("\x1b", "\x07", "\x9b", "\u202e", "\r")


def is_clean(text):
    return not any(each in text for each in CONTROL)


def test_what_is_printable_stays():
    assert printable("Zürich, λ = 0.5 ‘x’ …\xa0m²") == "Zürich, λ = 0.5 ‘x’ …\xa0m²"
    assert printable(EVIL) == "\\x1b[2J\\x1b]0;owned\\x07\\x9b31m\\u202ered\\r\\nok"
    assert printable("a\nb", lines=True) == "a\nb"


@pytest.mark.parametrize("how", ["refusal", "failure", "unfit"])
def test_what_a_site_says_of_itself_is_made_plain(files, tmp_path, how):
    asked, shown = study(), io.StringIO()

    class Evil(Direct):
        def exchange(self, requests):
            replies = super().exchange(requests)
            if how == "failure":
                return replies | {"genf": Failure(EVIL)}
            spec = {REFUSED: EVIL} if how == "refusal" else {**replies["genf"].spec, "unfit": [EVIL]}
            return replies | {"genf": Reply(spec, {})}

    console = Console(file=shown, force_terminal=True, width=200)
    with Board(console, asked.sites) as board, pytest.raises(StudyError) as caught:
        run_study(asked, Evil(desks(asked, files)), tmp_path, watch=board.see)
    assert "owned" in str(caught.value)
    assert is_clean(str(caught.value))
    assert "\x1b[2J" not in shown.getvalue()
    assert "\x1b]0" not in shown.getvalue()
    assert "\x9b" not in shown.getvalue()


def test_a_board_shows_no_escape_of_anybodys():
    shown = io.StringIO()
    with Board(Console(file=shown, width=200), ("basel",)) as board:
        board.see("note", {"text": EVIL})
        board.see("lost", {"sites": {"basel": EVIL}, "seconds": 0.0})
        board.see("asked", {"number": 1, "kind": EVIL, "sites": 1})
    assert is_clean(shown.getvalue())
    assert "owned" in shown.getvalue()


def test_levels_of_a_site_reach_no_summary_as_they_are(tmp_path):
    """A level may be anything; result.json has it as it is, spelt out."""
    frames = tables()
    formula = '=HYPERLINK("http://evil","x")'
    for frame in frames.values():
        levels = {"never": "!never", "former": EVIL[::-1], "current": formula}  # the first is the reference
        frame["smoker"] = frame["smoker"].replace(levels)
    asked = study(lam=0.001)
    at = {}
    for site, frame in frames.items():
        frame.to_parquet(tmp_path / f"{site}.parquet")
        at[site] = StudyDesk(asked, site, table.read(tmp_path / f"{site}.parquet"))
    result = run_study(asked, Direct(at), tmp_path / "results")
    summary = (tmp_path / "results" / "summary.txt").read_text("utf-8")
    assert is_clean(summary)
    assert "denwo" in summary
    assert is_clean((tmp_path / "results" / "result.json").read_text("utf-8"))
    told = json.loads((tmp_path / "results" / "result.json").read_text("utf-8"))
    assert EVIL[::-1] in [each["level"] for each in told["coefficients"]]
    rows = list(csv.reader(io.StringIO(result.csv())))
    for row in rows[1:]:
        assert not any(cell.startswith(("=", "+", "@", "\t", "\r")) for cell in row)
        assert is_clean("".join(row))
        float(row[-1])
    assert ("'" + formula) in [row[2] for row in rows]
    assert any(float(row[-1]) < 0 for row in rows[1:])  # numbers are left alone


def test_what_the_coordinator_says_is_made_plain_at_the_site(files):
    asked = study()
    desk = StudyDesk(asked, "bern", files["whole"]["bern"])
    for words in ({"done": EVIL}, {"unfit": [EVIL]}, {"failed": EVIL}):
        desk.handle(Envelope.of(asked).around(Request("tell", words, {})))
    assert is_clean(str([list(told.values()) for told in desk.told]))
    assert all(is_clean("".join(map(str, told.values()))) for told in desk.told)


@pytest.mark.parametrize(
    "settings",
    [{"name": EVIL}, {"data": {"target": EVIL}}, {"data": {"features": ["age", EVIL]}}],
)
def test_a_study_with_escapes_in_it_is_refused(settings):
    with pytest.raises(StudyError, match="control character") as caught:
        parse(given(**settings))
    assert is_clean(str(caught.value))


def test_nothing_that_was_clean_has_changed(files, tmp_path):
    asked = study()
    result = run_study(asked, Direct(desks(asked, files)), tmp_path)
    assert printable(result.summary(), lines=True) == result.summary()
    assert np.isfinite(result.coef).all()
    assert load(writing.write(asked, tmp_path / "study.toml")) == asked
    assert issubclass(StoppedError, StudyError)


def test_neither_the_terminal_nor_the_log_of_a_site_is_controlled_from_elsewhere(tmp_path):
    with site_commands.out.capture() as told, showing.out.capture() as shown:
        site_commands._told(EVIL)
        showing.said(Request("ask", {}, {}), Reply({REFUSED: EVIL}, {}))
        showing.said(Request(EVIL, {}, {}), Reply({}, {}))
    assert (told.get() + shown.get()).count("owned") == 3
    assert is_clean(told.get() + shown.get())
    with joining._logging(tmp_path):
        try:
            raise ValueError(EVIL)
        except ValueError:
            logging.getLogger("unpooled.flower").exception("refused: %s", EVIL)
    text = (tmp_path / joining.LOG).read_text("utf-8")
    assert text.count("owned") == 2
    assert "Traceback" in text
    assert is_clean(text)
