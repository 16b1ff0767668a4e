"""The sentences and the static tables of the page, and what it refuses; no browser."""

import dataclasses
import html
import re

import numpy as np
import pytest

import unpooled as up
from unpooled.experiments import read
from unpooled.experiments.claims import Claim, Finding
from unpooled.experiments.verdict import Comparison, Verdict, judge
from unpooled.report import experiment_report, grouped, write_report
from unpooled.report.numbers import duration, percent, significant, span
from unpooled.report.sentences import headline, judged, leader, troubles

GOOD = Comparison("a", "l2", 100, 1.04, 1.0, 0.95, 1.05)
BAD = Comparison("b", "l2", 200, 0.9, 1.0, 0.95, 1.05)
CLAIM = Claim("a is faster", "Figure 1", "l2", ("a",), ("b",), why_not="It stumbles.")


def ending(run, value, **changes):
    history = {"round": np.array([0, 40]), "objective": np.array([9.0, value])}
    return dataclasses.replace(run, history=history, **changes)


def one_each(groups, **values):
    run = groups["Fast-FedDA"][0]
    return {name: [ending(run, v, seed=s) for s, v in enumerate(vs)] for name, vs in values.items()}


def test_verdict_in_words(groups):
    both = Verdict([GOOD, BAD])
    assert headline(both, groups) == "1 of 2 values agrees with the expected ones."
    text = judged(both)
    assert "farthest outside, is b at round 200: −10.0\u202f%" in text
    assert "±5\u202f%" in text
    assert text.endswith("Outside its tolerance: b.")
    assert "Outside" not in judged(Verdict([GOOD]))
    claims = [Finding(CLAIM, True, ""), Finding(CLAIM, False, ""), Finding(CLAIM, None, "")]
    assert headline(Verdict([], claims), groups) == "1 of 2 of the paper's claims held."
    assert headline(Verdict([GOOD], claims[:1]), groups).startswith("1 of 1 value agrees with the expected")


def test_no_verdict_is_said_so(groups, diverged):
    assert headline(None, groups) == "6 runs of 2 methods, all completed."
    assert headline(None, {"x": groups["FedAvg"][:1]}) == "1 run of x, completed."
    assert headline(None, {"x": [diverged]}) == "1 run of x, none completed."
    assert "judges nothing" in judged(None)
    assert "no table of expected values" in judged(Verdict())


def test_leader_and_its_seeds(groups):
    text = leader(one_each(groups, a=[3.0, 1.0, 2.0], b=[2.0, 5.0, 5.0]), "objective", "objective")
    assert text == (
        "a ends lowest in objective: 2.000 after 40 rounds, the mean over 3 seeds (1.000 to 3.000). "
        "Next is b with 4.000. a is lowest in 2 of the 3 seeds."
    )


def test_leader_of_a_metric_that_should_be_high(groups):
    runs = {
        name: [
            dataclasses.replace(
                r[0], history={"round": r[0].history["round"], "f1": r[0].history["objective"]}
            )
        ]
        for name, r in one_each(groups, a=[0.5], b=[0.9]).items()
    }
    assert leader(runs, "f1", "F1").startswith("b ends highest in F1: 0.9000")


def test_leader_is_careful(groups, diverged):
    one = leader(one_each(groups, a=[1.0], b=[2.0]), "objective", "objective")
    assert "one seed; another may order them differently" in one
    assert "a and b end level" in leader(one_each(groups, a=[1.0], b=[1.0]), "objective", "objective")
    alone = leader({"a": groups["FedAvg"], "bad": [diverged]}, "objective", "objective")
    assert alone.startswith("a ends with objective")
    assert "the other runs diverged" in alone
    assert (
        leader({"bad": [diverged]}, "objective", "objective") == "No method has a final value of objective."
    )
    longer = one_each(groups, a=[1.0], b=[2.0])
    longer["b"][0].history["round"][-1] = 80
    assert "did not run equally long (40 to 80 rounds)" in leader(longer, "objective", "objective")


def test_leader_does_not_compare_what_does_not_compare(groups):
    runs = one_each(groups, a=[1.0], b=[2.0])
    b = runs["b"][0]
    runs["b"] = [dataclasses.replace(b, settings={**b.settings, "problem": "another"})]
    assert "solved different problems" in leader(runs, "objective", "objective")
    runs["b"] = [dataclasses.replace(b, settings={**b.settings, "data": "another"})]
    assert "saw different data" in leader(runs, "objective", "objective")


def test_troubles_name_run_and_rounds(groups, diverged):
    (text,) = troubles({"FedAvg": [diverged]})
    assert text.startswith("FedAvg, seed 0: diverged. The upload of client")
    a, b = groups["Fast-FedDA"][:2]
    b = dataclasses.replace(b, history={name: column[::2] for name, column in b.history.items()})
    (text,) = troubles({"x": [a, b]})
    assert text == "The runs of x recorded different rounds; its curve shows the 11 they share."
    assert troubles(groups) == []
    empty = dataclasses.replace(a, history={})
    assert troubles({"x": [empty]}) == ["x has no recorded round and therefore no curve."]


def test_grouping_by_what_differs(go, groups):
    runs = [run for method in groups.values() for run in method]
    found = grouped(reversed(runs))
    assert {name: [r.seed for r in rs] for name, rs in found.items()} == {
        "FedAvg": [0, 1, 2],
        "FastFedDA": [0, 1, 2],
    }
    slow = go(up.FedAvg(step=0.005, local_steps=8))
    assert set(grouped([*groups["FedAvg"], slow])) == {"FedAvg, step 0.01", "FedAvg, step 0.005"}
    assert set(grouped([slow, slow])) == {"FedAvg", "FedAvg (2)"}


def experiment(**expected):
    lasso = read("lasso")
    return dataclasses.replace(
        lasso,
        arguments={"n_clients": 6, "n_rows": 20, "n_features": 30, "sparsity": 5},
        options={"rounds": 8, "cohort": 3, "batch_size": 5, "every": 2},
        methods={"FedDA": lasso.methods["FedDA"]},
        honest={},
        expected={**lasso.expected, "values": {}, "gap": {}, **expected},
        claims=(),
    )


def body(path):
    """The page's text without style, scripts and tags."""
    source = re.sub(r"<(style|script).*?</\1>", "", path.read_text("utf-8"), flags=re.DOTALL)
    return re.sub(r"[ \n]+", " ", html.unescape(re.sub(r"<[^>]*>", " ", source)))


def report_of(small, seeds, path):
    groups = {"FedDA": [small.run("FedDA", small.split(seed), seed) for seed in seeds]}
    splits = {seed: small.split(seed) for seed in seeds}
    verdict = judge(small, groups, splits.get)
    page = experiment_report(
        small, groups, path, verdict=verdict, split=splits[seeds[0]], command="unpooled reproduce lasso"
    )
    return groups, verdict, body(page)


def test_report_of_an_experiment(tmp_path):
    groups, _, text = report_of(experiment(), (0, 1), tmp_path / "deep" / "r.html")
    assert "no table of expected values" in text
    assert "unpooled reproduce lasso" in text
    assert "Data: synthetic data of seed 0" in text
    mean = float(np.mean([run.history["l2"][1] for run in groups["FedDA"]]))
    small = experiment(rounds=[2, 8], values={"FedDA": [mean, 1e9]})
    claims = (
        Claim("FedDA is good", "Figure 9", "l2", ("FedDA",), at_most=1e9),
        Claim("FedDA is perfect", "Figure 9", "l2", ("FedDA",), at_most=0.0, why_not="Nobody is."),
        Claim("FedDA beats itself", "Figure 9", "l2", ("FedDA",), ("Nobody",)),
    )
    small = dataclasses.replace(small, claims=claims, provenance={"data": "drawn from a hat"})
    _, verdict, text = report_of(small, (0, 1), tmp_path / "r.html")
    assert "1 of 2 values agrees with the expected ones; 1 of 2 of the paper's claims held." in text
    assert "✗ outside ±5\u202f%" in text
    assert "within tolerance" in text
    assert "did not hold · FedDA is perfect (Figure 9)" in text
    assert "Nobody is." in text
    assert "not judged: Nobody did not run" in text
    assert "drawn from a hat" in text
    assert verdict.optimum["l2"] > 0


def test_tables_hold_settings_costs_notes_and_versions(groups, tmp_path):
    noted = dataclasses.replace(groups["FedAvg"][0], notes=["the step was chosen"])
    text = body(write_report(tmp_path / "r.html", {**groups, "noted": [noted]}, title="T"))
    pieces = [
        "gamma 80", "step 0.01", "Problem(loss=Squared(), penalty=L1(lam=0.1)", "64\u202fkB", "3.2\u202fkB",
        "noted : the step was chosen", np.__version__, "All 40 rounds were done.", "No command was given",
        groups["FedAvg"][0].settings["data"],
    ]  # fmt: skip
    for piece in pieces:
        assert piece in text, piece


def test_nothing_in_the_file_points_elsewhere(report):
    source = report.read_text("utf-8")
    assert "default-src 'none'" in source
    addresses = re.findall(r"https?://[^\s\"'<]+", source)
    assert set(addresses) <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\s(src|href)=", source)
    assert report.stat().st_size < 300_000


def test_hostile_names_stay_text(groups, tmp_path):
    evil = "</script><script>alert(1)</script>&\u2028$title"
    run = dataclasses.replace(groups["FedAvg"][0], notes=[evil], message=evil)
    path = write_report(
        tmp_path / "r.html", {evil: [run]}, title=evil, subtitle=evil, labels={"l2": evil}, commands=[evil],
        verdict=Verdict(
            [dataclasses.replace(GOOD, method=evil)],
            [Finding(dataclasses.replace(CLAIM, text=evil, why_not=evil), False, evil)],
        ),
        provenance={evil: evil},
    )  # fmt: skip
    source = path.read_text("utf-8")
    assert "<script>alert" not in source
    assert source.count("</script>") == 2
    assert "\u2028" not in re.search(r'id="data">(.*?)</script>', source, re.DOTALL)[1]
    assert "$title" in body(path)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda g: ({}, {}), ValueError, "at least one run"),
        (lambda g: ({"a": []}, {}), ValueError, "group 'a' has no runs"),
        (lambda g: ({"a": g["FedAvg"][0]}, {}), TypeError, "group 'a' must be a list of runs"),
        (lambda g: ({"a": ["x.run"]}, {}), TypeError, "group 'a' must be a list of runs"),
        (lambda g: ({"a": g["FedAvg"][:1] * 2}, {}), ValueError, "two runs of seed 0"),
        (
            lambda g: (g, {"truth": np.ones(3)}),
            ValueError,
            r"truth has shape \(3,\), but the estimates have \(40,\)",
        ),
    ],
)
def test_bad_input(groups, tmp_path, change, error, message):
    chosen, options = change(groups)
    with pytest.raises(error, match=message):
        write_report(tmp_path / "r.html", chosen, title="T", **options)


def test_numbers_for_people():
    assert [significant(v) for v in (0, 0.43501, 38.4984, 1949.4, 123456, 2.5e7, -1.5e-5, np.inf)] == [
        "0", "0.4350", "38.50", "1949", "123456", "2.50e7", "−1.50e−5", "not finite",
    ]  # fmt: skip
    assert [percent(v) for v in (0.031, -0.1, -1e-5)] == ["+3.1\u202f%", "−10.0\u202f%", "0.0\u202f%"]
    assert [duration(s) for s in (2.591, 56.8, 600, 9000)] == [
        "2.59\u202fs", "56.8\u202fs", "10.0\u202fmin", "2.5\u202fh",
    ]  # fmt: skip
    assert (span([40, 2000]), span([7, 7])) == ("40 to 2\u202f000", "7")
