"""Sites that answer for others, answer nothing, or answer what cannot be: named, and of no effect."""

import contextlib

import numpy as np
import pandas as pd
import pytest

from tests.study.sites import desks, study, tables
from unpooled.engines.remote.failures import BadReplyError
from unpooled.engines.remote.messages import Direct, Reply
from unpooled.engines.remote.replies import checked
from unpooled.study import table
from unpooled.study.config import StoppedError, StudyError
from unpooled.study.coordinator import run_study
from unpooled.study.description import unfits
from unpooled.study.desk import StudyDesk
from unpooled.study.patience import REFUSED

ATTACKER = "genf"


class Forging(Direct):
    """A transport on which one site changes its replies of a kind: ``forge(spec, arrays)`` gives both."""

    def __init__(self, desks, kind, forge):
        super().__init__(desks)
        self.kind, self.forge = kind, forge

    def exchange(self, requests):
        replies = super().exchange(requests)
        if ATTACKER in replies and requests[ATTACKER].kind == self.kind:
            spec, arrays = replies[ATTACKER]
            replies[ATTACKER] = Reply(*self.forge(dict(spec), dict(arrays)))
        return replies


def arrays(change):
    """A forger of arrays only."""
    return lambda spec, given: (spec, change(given))


def each(ending, value):
    """A forger of all arrays whose name ends so; those of other sites are made up where it has none."""
    return arrays(lambda given: {n: value(a) if n.endswith(ending) else a for n, a in given.items()})


def others(given):
    """The attacker's answers under everybody's position, ten times as large."""
    found = {}
    for name, array in given.items():
        for k in range(4):
            *q, _, kind = name.split("/")
            found["/".join([*q, str(k), kind])] = array if k == 2 else 10 * array
    return found


FORGED = {
    "others' intercepts": ("collect", arrays(others), "it answered '0/"),
    "others' sums": ("ask", arrays(others), "it answered '0/"),
    "a position of leading zeros": (
        "collect",
        arrays(lambda given: {f"0{n}": a for n, a in given.items()}),
        "it answered '02/",
    ),
    "nothing": ("ask", arrays(lambda given: {}), "its answer is empty, and it has 300 rows"),
    "no summary": ("collect", arrays(lambda given: {}), "its answer is empty"),
    "a large share": ("ask", each("/share", lambda a: 1e9 * a), "its share holds 1e\\+09, outside"),
    "no share": ("ask", each("/share", lambda a: 0 * a), "its share holds 0, outside"),
    "a negative share": ("ask", each("/share", lambda a: -a), "its share holds -1, outside"),
    "other rows": ("ask", each("/rows", lambda a: a * 1000), "its rows holds 300000, outside 300 to 300"),
    "a refusal taken back": ("ask", each("/refused_rows", lambda a: a - 1), "its refused_rows holds -1"),
    "sums as counts": ("ask", each("/mean_xt", lambda a: a.astype(int)), "its mean_xt has dtype int64"),
    "a scalar for a vector": ("ask", each("/mean_x", lambda a: a[:1]), "its mean_x has shape \\(1,\\)"),
    "infinite sums": ("ask", each("/mean_xt", lambda a: a + np.inf), "its mean_xt holds an infinite number"),
    "NaN in a summary": ("collect", each("/offset", lambda a: a * np.nan), "its offset holds NaN"),
    "negative squares": ("collect", each("/squares", lambda a: -1 - a), "its squares holds -"),
    "a summary cut short": ("collect", each("/anchor", lambda a: a[:3]), "its anchor has shape \\(3,\\)"),
    "another name": (
        "ask",
        arrays(lambda given: {n.replace("/floor", "/ceiling"): a for n, a in given.items()}),
        "it sent 'ceiling', which it was not asked: are the versions",
    ),
    "rows below zero": ("describe", lambda spec, a: ({**spec, "rows": -5}, a), "its rows cannot be -5"),
    "another site": (
        "describe",
        lambda spec, a: ({**spec, "site": "basel"}, a),
        "its site cannot be 'basel'",
    ),
    "no columns": ("describe", lambda spec, a: ({**spec, "kinds": None}, a), "its kinds cannot be None"),
    "levels of lists": (
        "describe",
        lambda spec, a: ({**spec, "levels": {"smoker": [["a"]]}}, a),
        "its levels cannot be",
    ),
    "a field of a newer version": (
        "describe",
        lambda spec, a: ({**spec, "mood": 1, "versions": {"unpooled": "9.1"}}, a),
        "it describes 'mood', which unpooled .* does not know.*; it runs unpooled 9.1",
    ),
    "a field too few": (
        "describe",
        lambda spec, a: ({n: v for n, v in spec.items() if n != "rows"}, a),
        "its description has no rows",
    ),
}


@pytest.fixture(scope="module")
def known(files, tmp_path_factory):
    """What the four sites find, and what the three honest ones do."""
    folder = tmp_path_factory.mktemp("known")
    whole = study(model={"intercept": "sites"})
    three = study(model={"intercept": "sites"}, sites=["basel", "bern", "zurich"])
    return {
        len(asked.sites): run_study(asked, Direct(desks(asked, files)), folder / str(len(asked.sites)))
        for asked in (whole, three)
    }


@pytest.mark.parametrize("attack", FORGED)
def test_a_forged_answer_names_the_forger_and_changes_nothing(files, tmp_path, known, attack):
    kind, forge, words = FORGED[attack]
    asked = study(model={"intercept": "sites"})
    with pytest.raises(StoppedError, match=rf"^genf: {words}.*; 3 of at least 4 sites are left"):
        run_study(asked, Forging(desks(asked, files), kind, forge), tmp_path / "stopped")
    mended = run_study(asked, Direct(desks(asked, files)), tmp_path / "stopped", resume=True)
    np.testing.assert_array_equal(mended.coef, known[4].coef)
    assert mended.intercept == known[4].intercept
    asked = study(model={"intercept": "sites"}, limits={"minimum_sites": 3})
    without = run_study(asked, Forging(desks(asked, files), kind, forge), tmp_path / "without")
    np.testing.assert_array_equal(without.coef, known[3].coef)
    assert without.intercept == known[3].intercept
    assert list(without.rows) == ["basel", "bern", "zurich"]


def test_a_site_of_another_version_that_cannot_answer_is_named_with_its_version(files, tmp_path):
    """A newer coordinator may ask what an older site does not understand."""
    asked = study()

    class Old(Direct):
        def exchange(self, requests):
            replies = super().exchange(requests)
            if requests[ATTACKER].kind == "describe":
                spec = {**replies[ATTACKER].spec, "versions": {"unpooled": "0.0.1"}}
                return replies | {ATTACKER: Reply(spec, {})}
            return replies | {ATTACKER: Reply({REFUSED: "TypeError; the site's own log says more"}, {})}

    with pytest.raises(StoppedError, match=r"^genf: TypeError; .*; it runs unpooled 0\.0\.1, and this is"):
        run_study(asked, Old(desks(asked, files)), tmp_path)


def typo(folder, column):
    """The attacker's table, honestly, with one number too many digits long."""
    frame = tables()[ATTACKER]
    frame.loc[7, column] = 1e200
    frame.to_csv(folder / "typo.csv", index=False)
    return table.read(folder / "typo.csv")


@pytest.mark.parametrize("column", ["pressure", "marker3"])
def test_a_typo_is_the_fault_of_one_site_and_can_be_repaired(files, tmp_path, column):
    """It is named before anything is computed, with its row at the site only."""
    asked = study()
    at = desks(asked, files)
    wrong = at | {ATTACKER: StudyDesk(asked, ATTACKER, typo(tmp_path, column))}
    with pytest.raises(StudyError, match=rf"genf: .*'{column}' has 1 value beyond 1e\+100$"):
        run_study(asked, Direct(wrong), tmp_path / "results")
    [unfit] = unfits(asked, wrong[ATTACKER].table, ATTACKER)
    assert unfit.here.endswith("the first in row 8: 1e+200")
    frame = tables()[ATTACKER].drop(index=7)
    frame.to_csv(tmp_path / "repaired.csv", index=False)
    right = at | {ATTACKER: StudyDesk(asked, ATTACKER, table.read(tmp_path / "repaired.csv"))}
    mended = run_study(asked, Direct(right), tmp_path / "results")
    straight = run_study(asked, Direct(right), tmp_path / "straight")
    np.testing.assert_array_equal(mended.coef, straight.coef)
    assert mended.rows[ATTACKER] == 299


def test_poison_that_is_on_disk_is_asked_for_again(files, tmp_path, known):
    """As left by a coordinator that was killed between an answer and its check."""
    asked = study(model={"intercept": "sites"})

    class Killed(Forging):
        def exchange(self, requests):
            replies = super().exchange(requests)
            if next(iter(requests.values())).kind == "ask":
                raise KeyboardInterrupt
            return replies

    from unpooled.study import journal

    with contextlib.suppress(KeyboardInterrupt):
        run_study(asked, Killed(desks(asked, files), "nothing", None), tmp_path / "results")
    checkpoint = tmp_path / "results" / "checkpoint"
    last = sorted(checkpoint.glob("*.npz"))[-1]
    with last.open("rb") as file:
        about, found = journal.packing.read(file)
    key = next(name for name in found if name.startswith(f"{ATTACKER}/") and name.endswith("offset"))
    found[key] = found[key] * np.nan
    with last.open("wb") as file:
        journal.packing.write(file, about, found)
    mended = run_study(asked, Direct(desks(asked, files)), tmp_path / "results", resume=True)
    np.testing.assert_array_equal(mended.coef, known[4].coef)


def test_folds_of_a_cross_validation_are_held_against_the_rule_that_deals_them(files, tmp_path):
    asked = study(lam="cv", model={"n_lambdas": 5, "folds": 3})
    honest = run_study(asked, Direct(desks(asked, files)), tmp_path / "honest")
    assert honest.converged

    def half(given):
        return {name: a / 2 if name.endswith("share") else a for name, a in given.items()}

    with pytest.raises(StoppedError, match="genf: its share holds"):
        run_study(asked, Forging(desks(asked, files), "ask", arrays(half)), tmp_path / "forged")


def test_whatever_a_rule_does_not_foresee_names_the_site():
    def check(reply, own):
        return str(1 // own)

    with pytest.raises(BadReplyError, match=r"'b': its answer cannot be read \(ZeroDivisionError") as caught:
        checked({"b": Reply({}, {})}, {"b": 0}, check)
    assert list(caught.value.reasons) == ["b"]


def test_pandas_reads_the_typo_as_a_number(tmp_path):
    """Or else the test above would not test what it says."""
    assert np.isfinite(typo(tmp_path, "pressure").numbers("pressure")).all()
    assert pd.read_csv(tmp_path / "typo.csv")["pressure"].max() == 1e200
    assert issubclass(StoppedError, StudyError)
