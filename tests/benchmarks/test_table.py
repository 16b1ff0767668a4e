"""The table's numbers, words and files."""

import io
import json
import math

import pytest
from rich.console import Console
from typer.testing import CliRunner

from benchmarks import table
from benchmarks.row import Row, Target, shown
from benchmarks.timing import Times, alternate

ROWS = [
    Row("speed", "lasso: against NumPy loop", 4.321, "×", Target(5), "2.3 ms a round"),
    Row("speed", "lasso: against JAX", None, "×", Target(3), "not installed: pip install 'flwr[simulation]'"),
    Row("latency", "import", 0.1234, "s", Target(0.5, at_least=False)),
    Row("threads", "the same bits", 1.0, "yes/no", Target(1)),
]


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (4.321, "×", "4.32×"),
        (43.21, "×", "43.2×"),
        (432.1, "×", "432×"),
        (0.4567, "%", "46 %"),
        (0.1234, "s", "0.123 s"),
        (3.2e-8, "", "3.2e-08"),
        (0.0, "", "0"),
        (math.nan, "×", "nan×"),
        (0.0, "yes/no", "no"),
    ],
)
def test_numbers(value, unit, expected):
    assert shown(value, unit) == expected


def test_targets():
    assert [row.verdict for row in ROWS] == ["missed", "", "met", "met"]
    assert [row.shown_target for row in ROWS] == ["≥ 5.00×", "≥ 3.00×", "≤ 0.500 s", "yes"]
    assert Row("", "", math.nan, "×", Target(1)).met is False
    assert Row("", "", 3.0, "×").met is None


def test_files(tmp_path):
    as_json, as_markdown = table.write(ROWS, {"cores": 2, "processor": "", "load": 0.5}, tmp_path / "new")
    found = json.loads(as_json.read_text())
    assert found["machine"]["cores"] == 2
    assert [row["met"] for row in found["rows"]] == [False, None, True, True]
    assert found["rows"][0]["value"] == 4.321
    lines = as_markdown.read_text().splitlines()
    assert lines[0] == "Measured on: cores 2, load 0.5."
    assert lines.count("### speed") == 1
    assert "| lasso: against NumPy loop | 4.32× | ≥ 5.00× | missed | 2.3 ms a round |" in lines


def test_terminal():
    console = Console(file=io.StringIO(), width=160)
    console.print(table.terminal(ROWS))
    text = console.file.getvalue()
    assert "pip install 'flwr[simulation]'" in text
    assert text.count("missed") == 1


def test_ratios_are_medians_of_turns_taken_together():
    times = Times({"slow": [4.0, 6.0, 90.0], "fast": [2.0, 2.0, 30.0]})
    assert times.ratio("slow", "fast") == 3.0
    assert times.spread("slow", "fast") == (2.0, 3.0)
    assert times.median("slow") == 6.0
    order = []
    taken = alternate({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 3)
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert {name: len(seconds) for name, seconds in taken.seconds.items()} == {"a": 3, "b": 3}


def test_a_missing_peer_is_a_row_and_not_a_crash(monkeypatch):
    from benchmarks import flower
    from benchmarks.options import Options

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    rows = list(flower.rows(Options()))
    assert [row.value for row in rows] == [None, None]
    assert rows[0].detail == "not installed: pip install 'flwr[simulation]'"


def test_unknown_sections_are_refused():
    import typer

    from benchmarks.__main__ import main

    app = typer.Typer()
    app.command()(main)
    result = CliRunner().invoke(app, ["--only", "speeed"])
    assert result.exit_code == 2
    assert "no section speeed" in result.stderr
