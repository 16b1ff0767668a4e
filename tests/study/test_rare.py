"""Values that few rows of a site have: a coordinator that merely reads learns nothing of them."""

import json

import numpy as np
import pandas as pd
import pytest

import unpooled as up
from tests.study.sites import SITES, desks, study, tables
from tests.study.villain import Villain, patients
from unpooled.engines.remote.messages import Direct
from unpooled.study import showing
from unpooled.study import table as tables_of
from unpooled.study.agreement import Agreement, DisagreementError, agree, notes
from unpooled.study.config import StoppedError, StudyError, parse
from unpooled.study.coordinator import run_study
from unpooled.study.description import describe, unfits
from unpooled.study.desk import StudyDesk
from unpooled.study.rare import rare_columns, row_sets


class Reading(Direct):
    """An honest coordinator that keeps every request and reply."""

    def __init__(self, desks):
        super().__init__(desks)
        self.seen = []

    def exchange(self, requests):
        replies = super().exchange(requests)
        self.seen += [(site, requests[site], replies[site]) for site in requests]
        return replies


def wards(tmp_path, frames):
    for site, frame in frames.items():
        frame.to_parquet(tmp_path / f"{site}.parquet")
    return {"whole": {site: tables_of.read(tmp_path / f"{site}.parquet") for site in frames}}


def one_of(n, rows):
    return np.isin(np.arange(n), rows).astype(int)


@pytest.mark.parametrize(("target", "kind", "lam"), [("pressure", "lasso", 0.1), ("died", "logistic", "cv")])
def test_nothing_is_sent_about_a_column_that_one_patient_has(tmp_path, target, kind, lam):
    frames = tables(n=260)
    frames["bern"]["lupus"] = one_of(280, [17])
    for site in ("basel", "genf", "zurich"):
        frames[site]["lupus"] = np.arange(len(frames[site])) % 2
    files = wards(tmp_path, frames)
    model = {"n_lambdas": 5}
    data = {"features": ["age", "marker0", "lupus"], "categorical": {}}
    asked = study(target, kind, lam, data=data, model=model)
    reading = Reading(desks(asked, files))
    result = run_study(asked, reading, tmp_path / "results")
    assert result.agreement.feature_names == ("age", "marker0")
    [said] = [note for note in result.notes if "lupus" in note]
    folds = " (or some, but fewer than 5, in a fold or outside it)" if lam == "cv" else ""
    assert said == f"lupus was left out: fewer than 10 rows{folds} stand out in it at bern."
    widths = {
        reply.arrays[name].shape
        for _, _, reply in reading.seen
        for name in reply.arrays
        if name.rpartition("/")[2] in ("mean_x", "anchor", "offset")
    }
    assert widths == {(2,)}
    known = study(target, kind, lam, data=data | {"features": ["age", "marker0"]}, model=model)
    alone = run_study(known, Direct(desks(known, files)), tmp_path / "without")
    np.testing.assert_array_equal(result.coef, alone.coef)


def test_the_owner_is_told_too(tmp_path):
    frames = tables()
    frames["bern"]["lupus"] = one_of(280, [17])
    for site in ("basel", "genf", "zurich"):
        frames[site]["lupus"] = np.arange(len(frames[site])) % 2
    files = wards(tmp_path, frames)
    asked = study(data={"features": ["age", "lupus"], "categorical": {}})
    told = []
    at = {site: StudyDesk(asked, site, files["whole"][site], note=told.append) for site in SITES}
    run_study(asked, Direct(at), tmp_path / "results")
    assert told == ["left out because too few rows stand out at one site (data.rare): 'lupus'"] * 4


def test_refuse_names_site_and_column(tmp_path):
    frames = tables()
    frames["bern"]["marker2"] = one_of(280, [3, 4])
    frames["genf"].loc[:1, "smoker"] = "pipe"
    asked = study(data={"rare": "refuse"})
    with pytest.raises(DisagreementError) as caught:
        run_study(asked, Direct(desks(asked, wards(tmp_path, frames))), tmp_path / "results")
    assert caught.value.by_site == {
        "bern": ["in column 'marker2' fewer than 10 rows stand out from the rest"],
        "genf": ["column 'smoker' has levels that fewer than 10 rows have"],
    }


@pytest.mark.parametrize(
    ("values", "is_rare"),
    [
        (one_of(400, range(9)), True),
        (one_of(400, range(10)), False),
        (1 - one_of(400, range(9)), True),
        (np.ones(400), False),
        (np.where(np.arange(400) == 7, 1e9, np.arange(400) / 400), True),
        (np.arange(400) / 400, False),
        (np.where(np.arange(400) < 5, np.arange(400), np.nan), True),
        (np.where(np.arange(400) < 5, np.nan, np.arange(400)), False),
        (np.full(400, np.nan), False),
    ],
)
def test_which_columns_are_rare(values, is_rare):
    asked = parse(
        {
            "name": "a",
            "sites": ["a"],
            "data": {"target": "y", "features": ["x"]},
            "model": {"kind": "lasso", "lambda": 0.1},
        }
    )
    assert rare_columns(asked, "a", np.asarray(values, dtype=float)[:, None]).tolist() == [is_rare]


def test_folds_have_enough_rows_of_every_value():
    """Answers about all rows, less those without a fold, are about the fold."""
    given = {"name": "a", "sites": ["a"], "data": {"target": "y", "features": ["x"]}}
    asked = parse({**given, "model": {"kind": "lasso"}})
    few = one_of(400, range(12))
    assert rare_columns(asked, "a", few[:, None].astype(float)).tolist() == [True]
    many = one_of(400, range(0, 400, 4))
    assert not rare_columns(asked, "a", many[:, None].astype(float)).any()
    sets = list(row_sets(asked, "a", 400))
    assert len(sets) == 11
    assert sorted(np.concatenate([rows for rows, _ in sets[1::2]]).tolist()) == list(range(400))


def owner_is_told(monkeypatch, asked, table):
    told = []
    monkeypatch.setattr(showing.out, "print", lambda text, **_: told.append(text))
    showing.rare(asked, "bern", table)
    return told


def test_levels_that_are_rare_in_a_fold_alone(tmp_path, monkeypatch):
    """The rule, its levels and their rows at the site; the rule and the column, no more, elsewhere."""
    frames = tables()
    frames["bern"].loc[:13, "smoker"] = "pipe"
    frames["bern"]["marker2"] = one_of(280, range(14))
    asked = study("died", "logistic", "cv", data={"categorical": {"smoker": "agree"}}, model={"n_lambdas": 5})
    files = wards(tmp_path, frames)
    table = files["whole"]["bern"]
    usual = frames["bern"]["smoker"].value_counts().index[0]
    folds = "(or some, but fewer than 5, in a fold or outside it)"
    column, level = owner_is_told(monkeypatch, asked, table)
    assert column.endswith(
        "column 'marker2' will be left out: in a fold here, or outside it, some rows, but fewer than 5, "
        "stand out in it; fewer model.folds may keep it, a fixed model.lambda does"
    )
    assert level.endswith(
        f"column 'smoker': level 'pipe' (14 rows) counts as '{usual}', the most common level here, because "
        f"levels of fewer than 10 rows {folds} are merged; fewer model.folds may keep those of 10 rows or "
        "more, a fixed model.lambda does"
    )
    described = [describe(asked, site, files["whole"][site]) for site in SITES]
    assert "pipe" not in json.dumps([each.plain() for each in described])
    said = notes(agree(asked, described), asked, described)
    assert (
        f"smoker: rows of levels that fewer than 10 have {folds} count as the most common level of their "
        "site, at bern. Fewer model.folds may keep those of 10 rows or more, a fixed model.lambda does."
    ) in said
    assert f"marker2 was left out: fewer than 10 rows {folds} stand out in it at bern." in said
    assert not any("14" in note or "pipe" in note for note in said)
    whole = study("died", "logistic", 0.1, data={"categorical": {"smoker": "agree"}})
    assert owner_is_told(monkeypatch, whole, table) == []
    by_site = study(
        "died", "logistic", "cv", data={"categorical": {"smoker": "agree"}}, model={"folds": "sites"}
    )
    assert owner_is_told(monkeypatch, by_site, table) == []
    refusing = study("died", "logistic", "cv", data={"categorical": {"smoker": "agree"}, "rare": "refuse"})
    assert [each.elsewhere for each in unfits(refusing, table, "bern")] == [
        f"in column 'marker2' fewer than 10 rows {folds} stand out from the rest",
        f"column 'smoker' has levels that fewer than 10 rows have {folds}",
    ]


def test_levels_that_few_have_become_others(tmp_path):
    frames = tables()
    frames["bern"].loc[:3, "smoker"] = "pipe"
    frames["genf"].loc[:30, "smoker"] = "pipe"  # so that it is a level
    frames["zurich"].loc[:6, "smoker"] = "cigar"
    frames["zurich"].loc[7:13, "smoker"] = "snuff"
    files = wards(tmp_path, frames)
    asked = study()
    described = [describe(asked, site, files["whole"][site]) for site in SITES]
    agreement = agree(asked, described)
    [smoker, _] = agreement.categories
    assert smoker.levels == ("current", "former", "never", "pipe")
    assert smoker.has_other
    assert "cigar" not in json.dumps([each.plain() for each in described])
    said = notes(agreement, asked, described)
    assert said[:2] == [
        "smoker: 4 levels, and 'other' for levels of fewer than 10 rows, reference 'current'.",
        "smoker: rows of levels that fewer than 10 have count as the most common level of their site, "
        "at bern.",
    ]
    result = run_study(asked, Direct(desks(asked, files)), tmp_path / "results")
    names = list(agreement.feature_names)
    rows, y = [], []
    for site, frame in frames.items():
        levels = frame["smoker"].replace({"cigar": "other", "snuff": "other"})
        if site == "bern":
            levels = levels.replace("pipe", frame["smoker"].value_counts().index[0])
        columns = {f"smoker={level}": levels == level for level in ("former", "never", "pipe", "other")}
        columns |= {f"ward={w}": frame["ward"] == w for w in (2, 3)}
        rows.append(pd.DataFrame({n: columns.get(n, frame.get(n)) for n in names}).to_numpy(float))
        y.append(frame["pressure"].to_numpy())
    data = up.FederatedData.from_clients({s: (X, t) for s, X, t in zip(SITES, rows, y, strict=True)})
    known = up.FederatedLasso(0.1, standardise=True).fit(data)
    np.testing.assert_allclose(result.coef, known.coef_, rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"died": one_of(120, [5])}, "the target 'died' has a class that fewer than 10 rows have"),
        ({"pressure": 3.0 * one_of(120, [5])}, "in the target 'pressure' fewer than 10 rows stand out"),
    ],
)
def test_a_target_that_few_rows_have(tmp_path, change, words):
    frame = patients().assign(**change)
    frame.to_parquet(tmp_path / "bern.parquet")
    table = tables_of.read(tmp_path / "bern.parquet")
    target = next(iter(change))
    kind = "logistic" if target == "died" else "poisson"
    given = {"name": "a", "sites": ["bern"], "data": {"target": target, "features": ["age"]}}
    asked = parse({**given, "model": {"kind": kind, "lambda": 0.1}})
    [found] = unfits(asked, table, "bern")
    assert words in found.elsewhere
    assert "leave out these rows" in found.here
    if target == "died":
        assert describe(asked, "bern", table).classes == [0]
    with pytest.raises(StudyError, match=words):
        run_study(asked, Direct({"bern": StudyDesk(asked, "bern", table)}), tmp_path / "results")


def test_a_coordinator_that_agrees_on_a_rare_column_all_the_same(tmp_path):
    frame = patients()
    frame["hiv"] = one_of(120, [50])
    bern = Villain(tmp_path, "pressure", "lasso", 0.1, frame, data={"features": ["age", "hiv"]})
    assert bern.agreement.features == ("age",)
    bern.agreement = Agreement(("age", "hiv"), (), ())
    reply = bern.ask({"w": np.zeros(3)})
    assert not reply.arrays
    assert reply.spec["refused"] == (
        "the coordinator asked for column 'hiv', and fewer rows of this site stand out in it than "
        "limits.minimum_rows = 10"
    )


def test_small_sites_deal_into_fewer_folds(tmp_path):
    frames = {
        site: frame.head(n) for (site, frame), n in zip(tables().items(), (40, 25, 70, 15), strict=True)
    }
    at = wards(tmp_path, frames)
    given = {"categorical": {}, "features": ["age", "marker0"]}
    asked = study("pressure", "lasso", "cv", data=given, model={"folds": 5, "standardise": False})
    result = run_study(asked, Direct(desks(asked, at)), tmp_path / "results")
    pooled = up.FederatedData.from_clients(
        {site: (frame[["age", "marker0"]], frame["pressure"]) for site, frame in frames.items()}
    )
    problem = up.Problem(up.Squared(), up.L1(1.0), True)
    known = up.cross_validate(problem, pooled, folds=5, fold_rows=10)
    assert result.lam == pytest.approx(known.lam, rel=1e-9)
    np.testing.assert_allclose(result.coef, known.model[0], atol=1e-7)


def test_folds_of_fewer_rows_than_a_site_must_have(tmp_path):
    frames = {site: frame.head(40) for site, frame in tables().items()}
    files = wards(tmp_path, frames)
    given = {"categorical": {}, "features": ["age", "marker0"]}
    asked = study("pressure", "lasso", "cv", data=given, model={"intercept": "sites"})
    with pytest.raises(StudyError, match=r"its rows make folds of fewer than limits.minimum_rows = 10"):
        run_study(asked, Direct(desks(asked, files)), tmp_path / "results")


def test_folds_that_nobody_has_rows_for(tmp_path):
    files = wards(tmp_path, {site: frame.head(15) for site, frame in tables().items()})
    asked = study("pressure", "lasso", "cv", data={"categorical": {}, "features": ["age", "marker0"]})
    with pytest.raises(StudyError, match=r"model.folds = 5: .* no rows; lower fold_rows=10, or take fewer"):
        run_study(asked, Direct(desks(asked, files)), tmp_path / "results")


def test_a_study_without_any_common_column_left(tmp_path):
    frames = tables()
    frames["bern"]["age"] = one_of(280, [1])
    asked = study(data={"features": ["age"], "categorical": {}})
    with pytest.raises(StudyError, match="no column is left") as caught:
        run_study(asked, Direct(desks(asked, wards(tmp_path, frames))), tmp_path / "results")
    assert not isinstance(caught.value, StoppedError)  # there is nothing to resume


@pytest.mark.parametrize(("folds", "is_said"), [(5, True), ("sites", False)])
def test_folds_of_sites_divide_nobodys_rows(tmp_path, folds, is_said):
    frames = tables()
    frames["bern"]["died"] = np.where(np.arange(280) == 3, "yes", "no")
    asked = study("died", "logistic", "cv", model={"folds": folds})
    [unfit] = unfits(asked, wards(tmp_path, frames)["whole"]["bern"], "bern")
    assert ("half as many of them in a fold of 5" in unfit.here) == is_said
    assert ("agree on fewer folds" in unfit.here) == is_said
    assert "in a fold of sites" not in unfit.here
