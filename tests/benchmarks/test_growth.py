"""Exponents and memory as the bench fits them, where both are known."""

import sys

import pytest

from benchmarks.growth import exponent, memory


def test_the_exponent_of_a_power_law():
    sizes = (10, 20, 40, 80)
    row = exponent("growth", "a round ∝ the cohort", sizes, [3e-3 * n**1.5 for n in sizes])
    assert row.value == pytest.approx(1.5)
    assert row.name == "time of a round ∝ the cohort, to the power"
    assert row.detail.startswith("ms at 10: 94.9, 20: 268")


@pytest.mark.skipif(sys.platform == "win32", reason="there is no resource module")
def test_a_process_that_holds_its_data_twice():
    code = "held = [b'x' * (int(sys.argv[1]) * 10**6) for _ in range(2)]"
    assert memory("growth", code, (50, 100)).value == pytest.approx(2, abs=0.1)
