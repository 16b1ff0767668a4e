"""Claims in numbers: who is ahead where, and what ends on the right side of a number."""

import dataclasses

import numpy as np
import pytest

from tests.runs import FAST, go
from unpooled.experiments.claims import Claim


@pytest.fixture(scope="module")
def run(small):
    return go(FAST, small)


def curves(run, **values):
    """One run a method, with these values of a metric at rounds 0, 10, 20, …"""
    runs = {}
    for name, column in values.items():
        history = {"round": 10 * np.arange(len(column)), "error": np.array(column, dtype=float)}
        history["accuracy"] = 1.0 - history["error"]
        runs[name] = [dataclasses.replace(run, history=history)]
    return runs


def test_ahead_at_every_round(run):
    runs = curves(run, a=[1, 0.5, 0.2], b=[1, 0.4, 0.3], c=[1, 0.6, 0.4])
    claim = Claim("", "", "error", ("a", "b"), ("c",), rounds=(10, 20))
    found = claim.judge(runs, rounds=20)
    assert found.holds
    assert found.evidence == "ahead at 2 of the 2 recorded rounds from 10 to 20"
    whole = Claim("", "", "error", ("a", "b"), ("c",), rounds=(0, 20)).judge(runs, rounds=20)
    assert whole.holds is False  # level at the start is not ahead
    assert whole.evidence.endswith("; not at round 0")
    assert Claim("", "", "error", ("a", "b"), ("c",), rounds=(0, 20), share=0.6).judge(runs, rounds=20).holds


def test_higher_is_better_for_accuracy(run):
    runs = curves(run, a=[1, 0.5, 0.2], b=[1, 0.6, 0.3])
    assert Claim("", "", "accuracy", ("a",), ("b",), rounds=(10, 20)).judge(runs, 20).holds
    assert not Claim("", "", "accuracy", ("b",), ("a",), rounds=(10, 20)).judge(runs, 20).holds


def test_one_of_the_methods_behind_is_enough(run):
    runs = curves(run, a=[1, 0.5, 0.2], b=[1, 0.7, 0.3], c=[1, 0.6, 0.4])
    found = Claim("", "", "error", ("a", "b"), ("c",), rounds=(10, 20)).judge(runs, 20)
    assert found.holds is False
    assert found.mark == "✗"
    assert "ahead at 1 of the 2" in found.evidence


def test_reaching_a_number(run):
    runs = curves(run, a=[1, 0.5, 0.2], b=[1, 0.7, 0.3])
    found = Claim("", "", "error", ("a", "b"), at_most=0.3).judge(runs, rounds=20)
    assert (found.holds, found.evidence) == (True, "at round 20: a 0.2, b 0.3")
    assert Claim("", "", "error", ("a", "b"), at_most=0.6, round=10).judge(runs, 20).holds is False
    assert Claim("", "", "error", ("a",), at_least=0.2, at_most=0.2).judge(runs, 20).holds


def test_what_cannot_be_judged_is_not(run):
    runs = curves(run, a=[1, 0.5, 0.2])
    assert Claim("", "", "error", ("a",), ("c",)).judge(runs, 20).evidence == "not judged: c did not run"
    early = Claim("", "", "error", ("a",), at_most=1.0).judge(runs, rounds=2000)
    assert (early.holds, early.mark) == (None, "–")
    assert "round 2000 was not recorded" in early.evidence


def test_a_diverged_method_holds_no_claim(run):
    runs = curves(run, a=[1, 0.5, 0.2])
    runs["a"] = [dataclasses.replace(runs["a"][0], status="diverged")]
    found = Claim("", "", "error", ("a",), at_most=1.0).judge(runs, rounds=20)
    assert (found.holds, found.evidence) == (False, "a diverged")
