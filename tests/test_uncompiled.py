"""Kernels are plain Python: with UNPOOLED_COMPILE=off every one of them runs, and comes to the same."""

import os
import subprocess
import sys

import numpy as np
import pytest

from tests.kernel_cases import CASES, TOLERANCE, kernels
from unpooled.kernels.compile import compiles


@pytest.fixture(scope="module")
def uncompiled(tmp_path_factory):
    """The names of kernels whose source did not run, and what the cases returned."""
    file = tmp_path_factory.mktemp("uncompiled") / "returned.npz"
    command = [sys.executable, "-W", "error::RuntimeWarning", "-m", "tests.kernel_cases", str(file)]
    environment = {**os.environ, "UNPOOLED_COMPILE": "off"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), np.load(file)


def test_the_cases_reach_every_kernel(uncompiled):
    """A new kernel is in this contract by being there: add a case that calls it, or what does."""
    not_reached, _ = uncompiled
    assert not_reached == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:noise_seed")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_compiled_and_uncompiled_come_to_the_same(uncompiled, case):
    _, found = uncompiled
    for i, compiled in enumerate(case()):
        bound = TOLERANCE.get(case, 1e-10) * np.abs(compiled).max(initial=0.0)
        np.testing.assert_allclose(found[f"{case.__name__} {i}"], compiled, rtol=0, atol=bound)


def test_kernels_are_found_wherever_they_are():
    names = kernels().values()
    for one in ("kernels.draws.draw", "penalties.l1.L1Record.prox", "kernels.linalg.singular_values.shrink"):
        assert f"unpooled.{one}" in names
    assert "unpooled.kernels.plain_products.margins" in names
    assert "unpooled.engines.local.cohort.run_cohort" in names
    assert "unpooled.kernels.vector_products.margins" not in names


def test_a_wrong_switch_is_refused(monkeypatch):
    monkeypatch.setenv("UNPOOLED_COMPILE", "no")
    with pytest.raises(ValueError, match=r"UNPOOLED_COMPILE must be one of on, off, got 'no'"):
        compiles.__wrapped__()
