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
    words = r"client 'a', column 'drug': 1 of its levels has fewer than 10 rows"
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
    assert "drug=other" not in coded.feature_names  # nobody's rows would be in it


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
        (
            lambda df: encode(
                df.assign(drug=[None, "missing"] * 120),
                "y",
                client="site",
                categorical=["drug"],
                missing="level",
            ),
            "rename it",
        ),
        (lambda df: encode(df, "y", client="site", missing="drop"), "missing must be 'error' or 'level'"),
        (lambda df: agree_levels(df, ["drug"], client="site")["ward"], "no levels were agreed"),
    ],
)
def test_bad_inputs(call, words):
    with pytest.raises((ValueError, TypeError, KeyError), match=words):
        call(frame())


def two_levels():
    """Sites 'a' and 'b' have many of both; site 'c' has two rows of 'm', too few for it to name them."""
    df = frame()
    df["sex"] = np.where(np.arange(240) // 3 % 2 == 0, "f", "m")
    df.loc[df["site"] == "c", "sex"] = "f"
    df.loc[[2, 5], "sex"] = "m"
    return df.drop(columns=["drug", "ward"])


def test_no_column_for_others_where_nobody_can_be_one():
    df = two_levels()
    coded = encode(df, "y", client="site")
    assert coded.feature_names == ("age", "sex=m")
    ordered = df.iloc[np.argsort(df["site"], kind="stable")]
    np.testing.assert_array_equal(coded.data.X[:, 1], ordered["sex"] == "m")
    assert not coded.levels["sex"].has_other
    assert coded.levels.notes == ("sex: 2 levels, reference 'f'.",)
    ledger = coded.levels.ledger
    assert ledger.rounds == 2  # site c is told 'f' and 'm', and says whether it has any other
    assert ledger.client_updates == 3 + 1
    assert (ledger.floats_up, ledger.bytes_up) == (2 + 2 + 1 + 3 + 1, 2 + 2 + 1 + 3 + 1)
    assert (ledger.floats_down, ledger.bytes_down) == (2, 2)
    df.loc[8, "sex"] = "x"
    coded = encode(df, "y", client="site")
    assert coded.feature_names == ("age", "sex=m", "sex=other")
    assert coded.data.X[:, 2].sum() == 1
    # a level of that name is in nobody's way where no row falls outside
    encode(two_levels().replace({"sex": {"m": "other"}}), "y", client="site")


@pytest.mark.parametrize("dtype", [object, "string", "category"])
def test_missing_levels_as_a_level_of_their_own(dtype):
    df = frame()
    df.loc[df.index % 8 == 1, "drug"] = None
    df = df.astype({"drug": dtype})
    coded = encode(df, "y", client="site", missing="level")
    assert coded.feature_names == ("age", "drug=q", "drug=r", "drug=x", "drug=missing", "ward")
    truth = pd.get_dummies(df["drug"].astype(object).fillna("zz missing"), dtype=float).drop(columns="p")
    order = np.argsort(df["site"], kind="stable")
    np.testing.assert_array_equal(coded.data.X[:, 1:5], truth.to_numpy()[order])
    assert coded.levels.notes == ("drug: 4 levels and 'missing', reference 'p'.",)
    np.testing.assert_array_equal(coded.apply(df)[order], coded.data.X)
    named = encode(df, "y", client="site", missing="level", reference={"drug": "missing"})
    assert named.feature_names == ("age", "drug=p", "drug=q", "drug=r", "drug=x", "ward")


def test_few_missing_levels():
    df = frame()
    df.loc[[1, 4], "drug"] = None  # at site a, which does not name them
    rare = encode(df, "y", client="site", missing="level")
    assert rare.feature_names == ("age", "drug=q", "drug=r", "drug=x", "drug=other", "ward")
    assert rare.data.client("a").X[:, 4].sum() == 2
    kept = encode(df, "y", client="site", missing="level", rare="keep")
    assert kept.feature_names[4] == "drug=missing"
    assert kept.data.client("a").X[:, 4].sum() == 2
    whole = encode(frame(), "y", client="site", missing="level")  # nothing is missing: no such column
    assert whole.feature_names == encode(frame(), "y", client="site").feature_names
    with pytest.raises(ValueError, match="the frame, column 'drug': the level 'missing' is not one that was"):
        whole.apply(df)
    with pytest.raises(ValueError, match="2 missing values; missing='level' makes them a level of their own"):
        encode(df, "y", client="site")
    with pytest.raises(ValueError, match="2 missing values"):  # not "other" in silence
        encode(df, "y", client="site", levels=agree_levels(frame(), ["drug"], client="site", rare="other"))


def test_missing_whole_numbers():
    df = frame()
    df["ward"] = df["ward"].astype(float).where(df.index % 4 != 0)
    coded = encode(df, "y", client="site", categorical=["drug", "ward"], missing="level")
    assert coded.feature_names[-3:] == ("ward=2", "ward=3", "ward=missing")
    assert coded.data.X[:, -1].sum() == 60


def test_groups_for_the_group_lasso():
    df = frame()
    coded = encode(df, "y", client="site", categorical=["drug", "ward"])
    assert coded.feature_names == ("age", "drug=q", "drug=r", "drug=x", "ward=2", "ward=3")
    assert coded.groups == ("age", "drug", "drug", "drug", "ward", "ward")
    by_hand = [[0], [1, 2, 3], [4, 5]]
    problems = [up.Problem(up.Squared(), up.GroupL2(0.05, g), True) for g in (coded.groups, by_hand)]
    fits = [up.solve(problem, coded.data) for problem in problems]
    np.testing.assert_allclose(fits[0].w, fits[1].w, rtol=1e-12)
    model = up.FederatedGroupLasso(0.05, groups=coded.groups).fit(coded.data)
    np.testing.assert_allclose(model.coef_, fits[1].w, atol=1e-9)
