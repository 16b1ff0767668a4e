"""Progress: how many exchanges are expected, how long they took, and what a rare value costs."""

import io

import numpy as np
import pytest
from rich.console import Console

from tests.study.sites import desks, study
from unpooled.engines.remote.messages import Direct, Failure, Reply, Request
from unpooled.study.board import Board
from unpooled.study.coordinator import run_study
from unpooled.study.forecast import Forecast


class Seen(list):
    """A watcher that keeps all events."""

    def __call__(self, event, data):
        self.append((event, dict(data)))

    def of(self, event):
        return [data for each, data in self if each == event]


def ran(asked, at, folder):
    seen = Seen()
    run_study(asked, Direct(at), folder, watch=seen)
    return seen


@pytest.mark.parametrize(
    ("arguments", "settings"),
    [
        ((), {}),
        ((), {"model": {"intercept": "sites"}}),
        ((), {"model": {"standardise": False}}),
        ((), {"lam": "path"}),
        (("died", "logistic", 0.01), {}),
        (("died", "logistic", "path"), {}),
        (("visits", "poisson", 0.01), {}),
        ((), {"solver": {"method": "anderson"}}),
    ],
)
def test_the_forecast_is_right_by_a_third(files, tmp_path, arguments, settings):
    """From the first exchange on, and for most of them to the number."""
    asked = study(*arguments, **settings)
    seen = ran(asked, desks(asked, files), tmp_path).of("asked")
    assert [each["number"] for each in seen] == list(range(1, len(seen) + 1))
    for each in seen:
        assert len(seen) * 0.66 - 1 <= each["expected"] <= len(seen) * 1.5 + 1
    assert seen[0]["seconds"] == 0.0
    assert all(each["seconds"] > 0.0 for each in seen[1:])
    assert all(("left" in each) == (1 < each["number"] <= each["expected"]) for each in seen)


def question(solver):
    return dict.fromkeys(("basel", "bern"), Request("ask", {"questions": [{"solver": {"is": solver}}]}, {}))


def answers(refusal):
    return {
        "basel": Reply({}, {"0/0/refused_rows": np.array(0), "0/0/refused_columns": np.array(0)}),
        "bern": Reply({}, {f"0/1/{refusal}": np.array(1), "0/1/gradient": np.ones(3)}),
    }


@pytest.mark.parametrize(
    ("refusal", "why"),
    [
        ("refused_columns", "fewer than 10 of its rows stand out in a column"),
        ("refused_rows", "it has fewer than 10 rows, in a fold perhaps"),
    ],
)
def test_what_a_rare_value_costs_is_said_at_once_and_once(refusal, why):
    """Gram matrices are refused, as a site with a rare level does: the solver goes on with gradients."""
    seen = Seen()
    forecast = Forecast(study(), seen)
    assert forecast.expected == 3
    forecast.ask(question("SufficientStatistics"))
    forecast.answered(answers(refusal))
    assert not seen
    for _ in range(3):
        forecast.ask(question("AndersonProxGradient"))
        forecast.answered({"basel": Reply({}, {}), "bern": Failure("no answer")})
    [note] = [each["text"] for each in seen.of("note")]
    assert f"(bern: {why}): about 23 exchanges are expected instead of 3." in note
    assert "merge a rare level" in note
    assert forecast.expected == 23


def test_a_few_more_exchanges_are_not_worth_a_sentence():
    seen = Seen()
    forecast = Forecast(study("died", "logistic", 0.01), seen)
    for _ in range(3):
        forecast.ask(question("ProxNewton"))
        forecast.answered(answers("refused_columns"))
    assert forecast.expected == 11
    assert not seen


def test_an_ordinary_study_has_nothing_to_say(files, tmp_path):
    asked = study("died", "logistic", 0.01)
    assert not ran(asked, desks(asked, files), tmp_path).of("note")


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ({"number": 1, "expected": 9, "seconds": 0.0}, "exchange 1 of about 9: {}"),
        (
            {"number": 3, "expected": 9, "seconds": 4.04, "left": 14.1},
            "exchange 3 of about 9: {}; 4 s so far, about 14 s more",
        ),
        (
            {"number": 5, "expected": 9, "seconds": 400.0, "left": 36000.0},
            "exchange 5 of about 9: {}; 6.7 min so far, about 10 h more",
        ),
        (
            {"number": 12, "expected": 9, "seconds": 7.0},
            "exchange 12 (about 9 were expected): {}; 7 s so far",
        ),
    ],
)
def test_progress_in_words(data, line):
    shown = io.StringIO()
    with Board(Console(file=shown, width=200), ("basel",)) as board:
        board.see("asked", {"kind": "ask", "sites": 2, **data})
    assert line.format("sums over rows, for the fit, of 2 sites") in shown.getvalue()
