"""The example in the documentation prints what it says."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "preprocessing.md"


def test_the_example_prints_what_the_page_says(capsys):
    parts = re.findall(r"```(?:python)?\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    code, printed = parts[:2]
    exec(compile(code, PAGE.name, "exec"), {})
    assert capsys.readouterr().out == printed
