"""What the coordinator sees: the last thing that happens, and what is not as usual for good."""

import io

import pytest
from rich.console import Console

from unpooled.study.board import Board

EVENTS = [
    ("starting", {}),
    ("joined", {"sites": ["basel", "bern"], "wanted": ["basel", "bern", "genf"], "least": 2}),
    ("agreed", {"sites": {"basel": 400, "bern": 450}}),
    ("asked", {"number": 3, "kind": "ask", "sites": 2}),
    ("waiting", {"sites": ["bern"], "seconds": 30.4}),
    ("gone", {"sites": ["bern"], "seconds": 60.0}),
    ("back", {"sites": ["bern"]}),
    ("lost", {"sites": {"genf": "did not answer within 300 s"}, "seconds": 0.0}),
    ("left out", {"sites": {"genf": "its gram holds NaN [1]"}, "left": ["basel", "bern"]}),
    ("note", {"text": "results/checkpoint cannot be written (No space left on device)"}),
]
STAY = [
    "  no answer from bern so far, after 30 s\n",
    "  bern is not connected; waiting 60 s for it to reconnect\n",
    "  back: bern\n",
    "  genf did not answer within 300 s; going on\n",
    "  genf left out; beginning again with basel, bern\n",
    "  results/checkpoint cannot be written (No space left on device)\n",
]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_what_is_not_as_usual_stays(is_terminal):
    text = io.StringIO()
    console = Console(file=text, force_terminal=is_terminal, width=100, highlight=False, color_system=None)
    with Board(console, ("basel", "bern", "genf")) as board:
        for event, data in EVENTS:
            board.see(event, data)
    shown = text.getvalue()
    for line in STAY:
        assert line in shown
    assert "[bold]" not in shown
    if not is_terminal:
        assert "  exchange 3: sums over rows, for the fit, of 2 sites\n" in shown
    else:
        last = shown.rpartition("site")[2]
        assert "450" in last
        assert "left out its gram holds NaN [1]" in last
