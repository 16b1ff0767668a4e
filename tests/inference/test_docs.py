"""The example of docs/inference.md prints what the page says."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "inference.md"


def test_the_example_prints_what_the_page_says(capsys):
    page = PAGE.read_text("utf-8")
    [code], [output] = (re.findall(rf"```{kind}\n(.*?)```", page, re.DOTALL) for kind in ("python", "text"))
    exec(compile(code, str(PAGE), "exec"), {})
    printed = capsys.readouterr().out.split()
    expected = output.split()
    assert len(printed) == len(expected)
    for own, other in zip(printed, expected, strict=True):
        try:
            assert float(own) == pytest.approx(float(other), rel=2e-3)
        except ValueError:
            assert own == other
