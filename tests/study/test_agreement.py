"""What a site's table must be like, what it says of itself, and who differs from whom."""

import json
import sys

import numpy as np
import pandas as pd
import polars
import pytest

from tests.study.sites import SITES, study, tables
from unpooled.study import table as tables_of
from unpooled.study.agreement import Agreement, DisagreementError, agree, notes
from unpooled.study.config import StudyError
from unpooled.study.description import describe, unfits


def saved(frame, path):
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    return tables_of.read(path)


def described(asked, frames, tmp_path):
    return [describe(asked, s, saved(f, tmp_path / f"{s}.parquet")) for s, f in frames.items()]


@pytest.mark.parametrize(
    ("suffix", "gone"), [(".csv", "pandas"), (".parquet", "pandas"), (".parquet", "pyarrow")]
)
def test_both_libraries_read_the_same(tmp_path, monkeypatch, suffix, gone):
    frame = tables(missing=True)["bern"]
    frame["flag"] = frame["age"] > 60
    frame["holes"] = frame["ward"].astype("Int64").mask(frame["age"] > 70)
    path = tmp_path / f"bern{suffix}"
    by_pandas = saved(frame, path)
    monkeypatch.setitem(sys.modules, gone, None)  # as if it were not installed; pandas needs it for Parquet
    by_polars = tables_of.read(path)
    assert by_polars.kinds == by_pandas.kinds
    assert by_pandas.kinds["holes"] == "whole number"
    assert by_pandas.kinds["flag"] == "true or false"
    assert by_pandas.kinds["smoker"] == "text"
    for name in by_pandas.columns:
        assert by_polars.labels(name) == by_pandas.labels(name)
        assert by_polars.missing(name) == by_pandas.missing(name)
    np.testing.assert_array_equal(by_pandas.numbers("creatinine"), frame["creatinine"])
    monkeypatch.setitem(sys.modules, "polars", None)
    if suffix == ".parquet":
        with pytest.raises(StudyError, match=r"bern.parquet: Parquet needs polars.*: pip install pandas"):
            tables_of.read(path)


def test_files_that_are_no_tables(tmp_path):
    with pytest.raises(StudyError, match="there is no file"):
        tables_of.read(tmp_path / "none.csv")
    (tmp_path / "a.xlsx").write_text("x")
    with pytest.raises(StudyError, match="neither CSV nor Parquet"):
        tables_of.read(tmp_path / "a.xlsx")
    (tmp_path / "a.parquet").write_text("x")
    with pytest.raises(StudyError, match=r"a.parquet cannot be read"):
        tables_of.read(tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("age,sex\n")
    with pytest.raises(StudyError, match="has no rows"):
        tables_of.read(tmp_path / "a.csv")
    polars.DataFrame({"day": [pd.Timestamp("2020-01-01")]}).write_parquet(tmp_path / "d.parquet")
    assert tables_of.read(tmp_path / "d.parquet").kinds["day"] not in ("number", "text")


def test_a_description_has_no_values_of_rows(tmp_path):
    frames = tables()
    frames["bern"].loc[:2, "smoker"] = "pipe and very rare"
    asked = study("died", "logistic")
    [bern] = described(asked, {"bern": frames["bern"]}, tmp_path)
    sent = json.dumps(bern.plain())
    assert "pipe" not in sent
    assert bern.merged == ["smoker"]  # three rows are too few for a level "other"
    assert bern.rare == []
    assert bern.levels == {"smoker": ["current", "former", "never"]}
    assert bern.classes == ["no", "yes"]
    assert "pressure" not in sent  # a column that the study does not concern
    assert not any(str(value) in sent for value in frames["bern"]["creatinine"])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: f.rename(columns={"ward": "Ward"}), "there is no column 'ward'; closest: 'Ward'"),
        (
            lambda f: f.assign(age=f["age"].astype(str) + "y"),
            "column 'age' holds text, not numbers: name it in",
        ),
        (
            lambda f: f.assign(age=f["age"].mask(f["age"] > 70)),
            "column 'age' has [0-9]+ missing values: data.m",
        ),
        (lambda f: f.assign(age=np.inf), "column 'age' has infinite values"),
        (
            lambda f: f.assign(smoker=f["smoker"].where(f["age"] < 70)),
            "'smoker' has [0-9]+ missing values: make",
        ),
        (
            lambda f: f.assign(smoker=f["age"]),
            "column 'smoker' holds number: levels are texts or whole numbers",
        ),
        (
            lambda f: f.assign(ward=f["ward"] + 1),
            r"column 'ward' has 4, but the study has 1, 2, 3; closest|has 4",
        ),
        (
            lambda f: f.assign(ward="a"),
            "column 'ward' holds text, but the study's levels of it are whole numbers",
        ),
        (lambda f: f.head(9), "9 rows: limits.minimum_rows is 10"),
        (lambda f: f.drop(columns="pressure"), "there is no column 'pressure'"),
        (lambda f: f.assign(pressure="high"), "the target 'pressure' holds text: lasso needs numbers"),
        (
            lambda f: f.assign(pressure=np.nan),
            "the target 'pressure' has 280 missing values: leave those rows",
        ),
    ],
)
def test_a_table_that_does_not_fit(tmp_path, change, said):
    table = saved(change(tables()["bern"]), tmp_path / "bern.parquet")
    found = unfits(study(), table)
    with pytest.raises(StudyError, match=said):
        raise StudyError("; ".join(each.here for each in found))


@pytest.mark.parametrize(
    ("target", "kind", "change", "said"),
    [
        ("stage", "logistic", {}, "has 3 classes; logistic has two, multinomial more: 0, 1, 2"),
        ("pressure", "logistic", {}, "the target 'pressure' holds number: logistic needs texts or whole"),
        (
            "visits",
            "poisson",
            {"visits": -1},
            "the target 'visits' has negative values: poisson needs counts",
        ),
    ],
)
def test_a_target_that_does_not_fit(tmp_path, target, kind, change, said):
    table = saved(tables()["bern"].assign(**change), tmp_path / "bern.parquet")
    [found] = unfits(study(target, kind), table)
    assert said in found.here
    assert "-1" not in found.elsewhere


def test_sites_that_fit_agree(tmp_path):
    asked = study("died", "logistic")
    found = agree(asked, described(asked, tables(), tmp_path))
    assert found.feature_names[:6] == (
        "age",
        "creatinine",
        "smoker=former",
        "smoker=never",
        "ward=2",
        "ward=3",
    )
    assert found.columns[2:6] == ("smoker", "smoker", "ward", "ward")
    assert found.classes == ("no", "yes")
    assert Agreement.from_plain(json.loads(json.dumps(found.plain()))) == found
    assert notes(found, asked)[0] == "smoker: 3 levels, reference 'current'."


def test_who_differs_is_named_with_what(tmp_path):
    frames = tables()
    frames["bern"] = frames["bern"].rename(columns={"marker5": "marker_5"})
    frames["genf"]["smoker"] = frames["genf"]["smoker"].map({"never": 0, "former": 1, "current": 2})
    asked = study(data={"features": "all"}, target="pressure")
    frames = {site: frame.drop(columns=["died", "visits", "stage"]) for site, frame in frames.items()}
    with pytest.raises(DisagreementError) as caught:
        agree(asked, described(asked, frames, tmp_path))
    assert caught.value.by_site == {
        "bern": [
            "it has no column 'marker5', as basel, genf, zurich do",
            "it has the column 'marker_5', which the others do not have",
        ],
        "genf": ["column 'smoker' holds numbers, but text at basel, bern, zurich"],
    }
    assert "bern: it has no column 'marker5'" in str(caught.value)


def test_levels_and_classes_that_do_not_go_together(tmp_path):
    frames = tables()
    frames["bern"].loc[:30, "smoker"] = "other"
    frames["genf"].loc[:5, "smoker"] = "pipe"
    frames["genf"].loc[6:11, "smoker"] = "snuff"
    asked = study()
    with pytest.raises(StudyError, match="has a level 'other' of its own beside rare ones"):
        agree(asked, described(asked, frames, tmp_path))
    frames = {site: frame.assign(died="no") for site, frame in tables().items()}
    asked = study("died", "logistic")
    with pytest.raises(
        StudyError, match="logistic needs two classes of 'died', the sites have 1: basel has 'no'"
    ):
        agree(asked, described(asked, frames, tmp_path))
    asked = study("died", "multinomial")
    with pytest.raises(StudyError, match="multinomial needs three classes or more"):
        agree(asked, described(asked, tables(), tmp_path))
    frames = tables()
    frames["zurich"]["died"] = (frames["zurich"]["died"] == "yes").astype(int)
    with pytest.raises(DisagreementError) as caught:
        agree(study("died", "logistic"), described(study("died", "logistic"), frames, tmp_path))
    assert list(caught.value.by_site) == ["zurich"]
    assert SITES[3] in str(caught.value)
