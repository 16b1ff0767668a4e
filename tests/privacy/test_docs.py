"""The example of docs/privacy.md prints what the page says."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "privacy.md"


def test_the_example_prints_what_the_page_says(capsys):
    code, printed = re.findall(r"```(?:python)?\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)[:2]
    exec(compile(code, PAGE.name, "exec"), {})
    assert capsys.readouterr().out == printed
