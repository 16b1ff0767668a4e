"""The gallery: the example on bundled data runs, the others say what they need."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
DATA = os.environ.get("UNPOOLED_EXAMPLE_DATA")  # a folder with the three that are not bundled
NEEDED = {
    "communities_and_crime": "communities_crime/communities.data",
    "heart_disease": "heart_disease",
    "parkinsons": "parkinsons_telemonitoring/parkinsons_updrs.data",
}


def module(name):
    specification = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    loaded = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(loaded)
    return loaded


def test_diabetes(tmp_path, capsys):
    figure = module("diabetes").main(tmp_path)
    assert figure.stat().st_size > 10_000
    said = capsys.readouterr().out
    assert "2 rounds" in said
    difference = float(said.split("pooled rows: ")[1].split()[0])
    assert difference < 1e-3  # of predictions between 25 and 346, where scikit-learn stops


@pytest.mark.parametrize("name", NEEDED)
def test_without_their_data_examples_say_where_to_get_it(name, tmp_path):
    command = [sys.executable, EXAMPLES / f"{name}.py", str(tmp_path / "nothing")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "see the top of this file for where to get it" in done.stderr
    assert "UCI Machine Learning Repository" in (EXAMPLES / f"{name}.py").read_text()


@pytest.mark.skipif(DATA is None, reason="UNPOOLED_EXAMPLE_DATA names no folder with the examples' data")
@pytest.mark.parametrize("name", NEEDED)
def test_on_its_data(name, tmp_path):
    assert module(name).main(Path(DATA) / NEEDED[name], tmp_path).stat().st_size > 10_000
