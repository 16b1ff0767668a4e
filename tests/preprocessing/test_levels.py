"""Categories agreed over sites, against scikit-learn's encoder on the pooled frame."""

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import OneHotEncoder

import unpooled as up
from unpooled.preprocessing import agree_levels, encode


def frame(n=240, seed=0):
    """Three sites; level 'x' is at site 'c' only, and site 'a' lacks level 'q'."""
    rng = np.random.default_rng(seed)
    site = np.array(list("bac"))[np.arange(n) % 3]
    drug = rng.choice(["p", "q", "r"], n)
    drug[(site == "a") & (drug == "q")] = "r"
    drug[(site == "c") & (drug == "p")] = "x"
    return pd.DataFrame(
        {
            "age": rng.normal(50, 10, n),
            "drug": drug,
            "ward": rng.integers(1, 4, n),
            "y": rng.normal(size=n),
            "site": site,
        }
    )


def truth(df, drop="first"):
    """The pooled dummies, rows in the order of the sites."""
    df = df.iloc[np.argsort(df["site"], kind="stable")]
    dummies = OneHotEncoder(drop=drop, sparse_output=False).fit_transform(df[["drug"]])
    return np.column_stack([df["age"], dummies, df["ward"]])


def test_the_columns_are_those_of_the_pooled_encoder():
    df = frame()
    coded = encode(df, "y", client="site")
    assert coded.feature_names == ("age", "drug=q", "drug=r", "drug=x", "ward")
    np.testing.assert_array_equal(coded.data.X, truth(df))
    np.testing.assert_array_equal(coded.data.y, df["y"].to_numpy()[np.argsort(df["site"], kind="stable")])
    assert coded.levels["drug"].reference == "p"
    assert coded.levels.notes == ("drug: 4 levels, reference 'p'.",)
    assert coded.levels.ledger.rounds == 1
    assert coded.levels.ledger.kinds == ("levels",)
    np.testing.assert_array_equal(coded.apply(df.iloc[::-1])[::-1], coded.apply(df))


def test_frames_by_client_are_the_same_as_one_frame():
    df = frame()
    parts = {site: part.drop(columns="site") for site, part in df.groupby("site")}
    one, many = encode(df, "y", client="site"), encode(parts, "y")
    np.testing.assert_array_equal(one.data.X, many.data.X)
    assert one.data.ids == many.data.ids
    assert one.feature_names == many.feature_names


def test_the_split_over_sites_does_not_matter():
    df = frame()
    whole = encode(df.assign(site="a"), "y", client="site")
    halves = encode(df.assign(site=np.arange(240) // 120), "y", client="site")
    assert whole.feature_names == halves.feature_names
    np.testing.assert_array_equal(whole.data.X, halves.data.X)


def test_a_model_of_categories():
    df = frame()
    effect = df["drug"].map({"p": 0.0, "q": 2.0, "r": -1.0, "x": 0.5}).to_numpy()
    coded = encode(df.assign(y=effect + 0.01 * df["y"]), "y", client="site")
    fit = up.solve(up.Problem(up.Squared(), up.Zero(), True), coded.data)
    np.testing.assert_allclose(fit.w[1:4], [2.0, -1.0, 0.5], atol=0.02)
    new = pd.DataFrame({"age": [50.0], "drug": ["q"], "ward": [1]})
    assert (coded.apply(new) @ fit.w + fit.intercept)[0] == pytest.approx(2.0, abs=0.02)


def test_rare_levels_are_not_named():
    df = frame()
    df.loc[[0, 3], "drug"] = "z1"  # two rows of site b
    df.loc[1, "drug"] = "z2"  # one row of site a
    coded = encode(df, "y", client="site")
    drug = coded.levels["drug"]
    assert drug.levels == ("p", "q", "r", "x")
    assert drug.has_other
    assert coded.feature_names == ("age", "drug=q", "drug=r", "drug=x", "drug=other", "ward")
    assert coded.data.X[:, 4].sum() == 3
    assert coded.data.client("c").X[:, 4].sum() == 0
    assert "'other' for levels of fewer than 10 rows" in coded.levels.notes[0]
    words = r"client 'a', column 'drug': 1 of its levels have fewer than 10 rows"
    with pytest.raises(ValueError, match=words) as refused:
        encode(df, "y", client="site", rare="refuse")
    assert "z2" not in str(refused.value)
    kept = encode(df, "y", client="site", rare="keep")
    np.testing.assert_array_equal(kept.data.X, truth(df))
    fewer = agree_levels(df, ["drug"], client="site", min_rows=2)
    assert fewer["drug"].levels == ("p", "q", "r", "x", "z1")


def test_a_level_that_another_site_names_is_itself_everywhere():
    df = frame()
    df.loc[[0, 3], "drug"] = "x"  # two rows at site b; site c has many
    coded = encode(df, "y", client="site")
    b = coded.data.client("b").X
    assert b[:, coded.feature_names.index("drug=x")].sum() == 2
    assert b[:, coded.feature_names.index("drug=other")].sum() == 0


def test_references():
    df = frame()
    all_levels = encode(df, "y", client="site", reference=False)
    np.testing.assert_array_equal(all_levels.data.X, truth(df, drop=None))
    named = encode(df, "y", client="site", reference={"drug": "r"})
    assert named.feature_names == ("age", "drug=p", "drug=q", "drug=x", "ward")
    np.testing.assert_array_equal(named.data.X, truth(df, drop=["r"]))
    with pytest.raises(ValueError, match="column 'drug' has no level 'zz' for a reference"):
        encode(df, "y", client="site", reference={"drug": "zz"})


def test_whole_numbers_as_categories():
    df = frame()
    coded = encode(df, "y", client="site", categorical=["drug", "ward"])
    assert coded.feature_names[-2:] == ("ward=2", "ward=3")
    np.testing.assert_array_equal(coded.data.X[:, -2], _ward(df) == 2)
    as_float = encode(
        df.assign(ward=df["ward"].astype(float)), "y", client="site", categorical=["drug", "ward"]
    )
    assert as_float.feature_names == coded.feature_names


def _ward(df):
    return df["ward"].to_numpy()[np.argsort(df["site"], kind="stable")]


def test_an_unknown_level_at_prediction():
    df = frame()
    new = pd.DataFrame({"age": [50.0], "drug": ["new"], "ward": [1]})
    coded = encode(df, "y", client="site")
    with pytest.raises(ValueError, match=r"the frame, column 'drug': the level 'new' is not one that was"):
        coded.apply(new)
    with pytest.raises(ValueError, match="the level 'new' is not"):
        coded.apply(new, unknown="other")  # there is no such column
    df.loc[0, "drug"] = "z"
    with_other = encode(df, "y", client="site")
    with pytest.raises(ValueError, match="unknown='other' takes it for one"):
        with_other.apply(new)
    np.testing.assert_array_equal(with_other.apply(new, unknown="other"), [[50, 0, 0, 0, 1, 1]])
    with pytest.raises(ValueError, match="unknown must be 'error' or 'other'"):
        coded.apply(new, unknown="ignore")
    with pytest.raises(ValueError, match="the frame has no column 'drug'"):
        coded.apply(new.drop(columns="drug"))


def test_levels_can_be_agreed_before():
    df = frame()
    levels = agree_levels(df, ["drug"], client="site")
    train, test = df.iloc[:200], df.iloc[200:]
    coded = encode(train, "y", client="site", levels=levels)
    assert coded.levels is levels
    np.testing.assert_array_equal(
        encode(test, "y", client="site", levels=levels).data.X,
        coded.apply(test.iloc[np.argsort(test["site"], kind="stable")]),
    )


def test_missing_numbers_pass_and_missing_levels_do_not():
    df = frame()
    df.loc[4, "age"] = np.nan
    with pytest.raises(ValueError, match="X must be finite"):
        encode(df, "y", client="site")
    coded = encode(df, "y", client="site", allow_missing=True)
    prepared = up.preprocessing.prepare(coded.data, missing="mean")
    assert prepared.data.feature_names == coded.feature_names
    df.loc[[1, 4], "drug"] = None
    for dtype in (object, "string", "category"):
        with pytest.raises(ValueError, match="client 'a', column 'drug': 2 missing values"):
            encode(df.astype({"drug": dtype}), "y", client="site", allow_missing=True)


@pytest.mark.parametrize("dtype", ["string", "category"])
def test_pandas_types_of_categories(dtype):
    df = frame()
    np.testing.assert_array_equal(encode(df.astype({"drug": dtype}), "y", client="site").data.X, truth(df))


def test_weights_come_along():
    df = frame().assign(s=np.linspace(1, 2, 240))
    coded = encode(df, "y", client="site", sample_weight="s")
    order = np.argsort(df["site"], kind="stable")
    np.testing.assert_allclose(coded.data.row_weights, df["s"].to_numpy()[order] / df["s"].sum())
    assert "s" not in coded.feature_names


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda df: encode(df, "z", client="site"), "the frame has no column 'z'"),
        (lambda df: encode(df, "y"), "the frame has no client column None"),
        (lambda df: encode(df, "y", client="clinic"), "the frame has no client column 'clinic'"),
        (lambda df: encode({"a": df}, "y", client="site"), "keys of the mapping"),
        (lambda df: encode({}, "y"), "no clients"),
        (lambda df: encode({"a": df, "b": df.drop(columns="age")}, "y"), "client 'b' 'drug', 'ward'"),
        (lambda df: encode(df.to_numpy(), "y", client="site"), "expected a frame"),
        (lambda df: encode(df, "y", client="site", rare="drop"), "rare must be"),
        (lambda df: encode(df, "y", client="site", min_rows=-1), "min_rows must be a whole number"),
        (lambda df: encode(df, "y", client="site", categorical=["ward"]), "column 'drug' is not numeric"),
        (lambda df: agree_levels(df, "drug", client="site"), "the single string 'drug'"),
        (lambda df: agree_levels(df, ["dose"], client="site"), "no categorical column 'dose'"),
        (lambda df: agree_levels(df, ["age"], client="site"), "levels are strings or whole numbers"),
        (lambda df: agree_levels(df, ["drug"], client="site", min_rows=1000), "no site has a level"),
        (lambda df: agree_levels({1: df, 2: df.assign(drug=5)}, ["drug"]), "strings at some clients"),
        (
            lambda df: agree_levels(df.assign(drug=["other"] * 239 + ["z"]), ["drug"], client="site"),
            "rename it",
        ),
        (lambda df: agree_levels(df, ["drug"], client="site")["ward"], "no levels were agreed"),
    ],
)
def test_bad_inputs(call, words):
    with pytest.raises((ValueError, TypeError, KeyError), match=words):
        call(frame())
