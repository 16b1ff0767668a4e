"""Files that only other programs read: they parse, and say what the package says."""

import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import unpooled as up

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
FILES = [
    ".pre-commit-config.yaml",
    "CITATION.cff",
    *(str(path.relative_to(ROOT)) for path in sorted((ROOT / ".github").rglob("*.yml"))),
]


def parsed(name):
    return yaml.safe_load((ROOT / name).read_text("utf-8"))


@pytest.mark.parametrize("name", FILES)
def test_it_parses(name):
    assert isinstance(parsed(name), dict)


def test_the_citation_is_that_of_the_package():
    cited = parsed("CITATION.cff")
    assert cited["title"] == PROJECT["name"]
    assert cited["version"] == up.__version__
    assert cited["license"] == PROJECT["license"]
    assert cited["abstract"] == PROJECT["description"]
    assert cited["keywords"] == PROJECT["keywords"]
    assert cited["authors"] == PROJECT["authors"]


def test_the_citation_names_the_paper():
    [paper] = parsed("CITATION.cff")["references"]
    assert paper["title"] == "Fast Composite Optimization and Statistical Recovery in Federated Learning"
    assert [author["family-names"] for author in paper["authors"]] == ["Bao", "Crawshaw", "Luo", "Liu"]


def test_the_workflow_runs_what_is_there():
    jobs = parsed(".github/workflows/ci.yml")["jobs"]
    commands = {name: [step["run"] for step in job["steps"] if "run" in step] for name, job in jobs.items()}
    assert commands["test"] == [".ci/run"]
    assert commands["smoke"][1:] == ["python .ci/smoke.py", f"{PROJECT['name']} --help"]
    assert os.name == "nt" or (ROOT / ".ci" / "run").stat().st_mode & stat.S_IXUSR


def test_the_workflow_takes_the_oldest_and_the_newest_python():
    jobs = parsed(".github/workflows/ci.yml")["jobs"].values()
    taken = {step["with"]["python-version"] for job in jobs for step in job["steps"] if "with" in step}
    head = "Programming Language :: Python :: 3."
    named = sorted(int(line[len(head) :]) for line in PROJECT["classifiers"] if line.startswith(head))
    assert taken == {f"3.{named[0]}", f"3.{named[-1]}"}
    assert PROJECT["requires-python"] == f">=3.{named[0]}"


def test_the_smoke_test_passes_here():
    done = subprocess.run(
        [sys.executable, ROOT / ".ci" / "smoke.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_hooks_are_those_of_make_lint():
    [local] = parsed(".pre-commit-config.yaml")["repos"]
    tools = {hook["entry"].split()[0] for hook in local["hooks"]}
    makefile = (ROOT / "Makefile").read_text("utf-8")
    recipe = makefile.split("\nlint:")[1].split("\n\n")[0]
    assert tools == {word.replace("$(BIN)", ".venv/bin") for word in recipe.split() if "$(BIN)" in word}
