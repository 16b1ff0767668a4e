"""The code in the README runs."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


def examples():
    return re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)


@pytest.mark.slow
def test_the_example_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(examples()[0], "README.md", "exec"), {})
    status, l2, f1, *_ = capsys.readouterr().out.split()
    assert status == "completed"
    assert float(l2) < 0.5
    assert float(f1) > 0.99
    assert (tmp_path / "fast.run").is_file()


def test_the_exact_example_runs(capsys):
    exec(compile(examples()[1], "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "tolerance 1e-08 reached" in printed
    assert printed.split()[-1] == "1"


def test_the_estimators_example_runs(capsys):
    _, _, code = examples()
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "FederatedLassoCV: 600 rows × 40 features of 6 clients" in printed
    assert "1 round" in printed
    assert printed.split()[-1] == "6"


def test_the_files_it_links_to_exist():
    for page in (README, README.parent / "CONTRIBUTING.md"):
        for target in re.findall(r"\]\(([^)#]+)", page.read_text("utf-8")):
            assert (README.parent / target).exists(), target
