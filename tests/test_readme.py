"""The code in the README runs."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.slow
def test_the_example_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    status, l2, f1, *_ = capsys.readouterr().out.split()
    assert status == "completed"
    assert float(l2) < 0.5
    assert float(f1) > 0.99
    assert (tmp_path / "fast.run").is_file()


def test_the_files_it_links_to_exist():
    for page in (README, README.parent / "CONTRIBUTING.md"):
        for target in re.findall(r"\]\(([^)#]+)", page.read_text("utf-8")):
            assert (README.parent / target).exists(), target
