"""``study.toml``: what is written can be read, and what is wrong is named."""

import re
import tomllib

import pytest

from tests.study.sites import settings, study
from unpooled.study import writing
from unpooled.study.config import StudyError, load, parse


@pytest.mark.parametrize("kind", ["lasso", "elastic net", "group lasso", "logistic", "poisson", "huber"])
@pytest.mark.parametrize("lam", [0.25, "cv"])
def test_what_is_written_is_read_back(tmp_path, kind, lam):
    more = (
        {"groups": {"blood": ["creatinine", "marker0"]}}
        if kind == "group lasso"
        else {"unpenalised": ["age"]}
    )
    asked = study("pressure", kind, lam, model=more | {"intercept": "sites"})
    path = writing.write(asked, tmp_path / "study.toml")
    assert load(path) == asked
    text = path.read_text("utf-8")
    assert max(map(len, text.splitlines())) <= 120
    assert all("#" in line for line in re.findall(r"^lambda.*$", text, re.MULTILINE))


def test_names_that_toml_has_to_quote(tmp_path):
    asked = settings(data={"features": ["a b", 'q"x', "é"], "categorical": {"a b": ["ü", "x\\y"]}})
    path = writing.write(parse(asked), tmp_path / "study.toml")
    assert load(path) == parse(asked)
    assert tomllib.loads(path.read_text("utf-8"))["data"]["features"] == ["a b", 'q"x', "é"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"nmae": "x"}, "nmae is not a key of a study; closest: 'name'"),
        ({"lambda": 3}, "lambda is not a key of a study; it belongs to model.lambda"),
        (
            {"data": {"standardize": True}},
            "data.standardize is not a key of a study; closest: 'model.standardise'",
        ),
        ({"model": {"kind": "laso"}}, "model.kind must be one of .* got 'laso'; closest: 'lasso'"),
        ({"model": {"lambda": -1}}, 'model.lambda must be a number ≥ 0, or one of "path", "cv", got -1'),
        ({"model": {"intercept": "site"}}, 'model.intercept must be true or false, or one of "sites"'),
        (
            {"solver": {"aggregate": "median"}},
            "solver.aggregate = 'median' is for fast_fedda, .*: exact solvers",
        ),
        ({"solver": {"aggregate": 0.5}}, 'solver.aggregate must be a number .* or one of "mean", "median"'),
        (
            {"limits": {"norm_bound": 10}},
            "limits.norm_bound = 10.0 is for fast_fedda, .*: exact solvers add up",
        ),
        ({"limits": {"norm_bound": -1}}, "limits.norm_bound must be a number ≥ 0, got -1"),
        ({"model": {"l1_ratio": 0.5}}, "model.l1_ratio is for elastic net, .* not for 'lasso'"),
        ({"model": {"unpenalised": ["agee"]}}, "model.unpenalised names 'agee', .*closest: 'age'"),
        (
            {"data": {"categorical": {"sex": "agree"}}},
            "data.categorical names 'sex', which is not in data.feat",
        ),
        (
            {"data": {"categorical": {"ward": [1, "a"]}}},
            "data.categorical has 'ward' = .*must be \"agree\" or",
        ),
        ({"data": {"missing": "drop"}}, 'data.missing must be one of "refuse", "mean", got \'drop\''),
        ({"data": {"target": "age"}}, "data.target 'age' cannot be a feature as well"),
        ({"sites": ["a", "a"]}, "sites names 'a' twice"),
        ({"sites": ["../a"]}, "sites has '../a': a site's id is made of letters"),
        (
            {"address": "here"},
            "address must be a host and a port such as \"study.hospital.org:9092\", got 'here'",
        ),
        ({"address": "http://study.org:9092"}, "address must be a host and a port .*, without http://, got"),
        ({"address": "https://study.org"}, "address must be a host and a port .* got 'https://study.org'"),
        ({"address": "https://study.org:9092/x"}, "address must be a host and a port"),
        ({"address": "a b:9092"}, "address has 'a b', which is no name or address of a machine"),
        ({"address": "10.0.0.999:9092"}, "address has '10.0.0.999', which is no name or address"),
        ({"address": "☃" * 70 + ":9092"}, "which is no name or address of a machine"),
        ({"limits": {"minimum_sites": 9}}, "limits.minimum_sites is 9, but sites names 4"),
        ({"limits": {"minimum_rows": 2.5}}, "limits.minimum_rows must be a whole number ≥ 0, got 2.5"),
        (
            {"solver": {"method": "fast_fedda"}, "model": {"lambda": "cv"}},
            "solver.method = 'fast_fedda' needs",
        ),
        ({"model": {"kind": "huber", "lambda": "path"}}, 'model.lambda = "path" chooses by likelihood'),
        ({"data": 3}, r"data must be a section, \[data\], got 3"),
    ],
)
def test_what_is_wrong_is_named(change, said):
    with pytest.raises(StudyError, match=said):
        parse(settings(**change))


def test_limits_follow_the_study_unless_they_are_given(tmp_path):
    one, many = study(), study(lam="cv", limits={"minimum_sites": 3, "max_requests": 50})
    assert (one.max_questions, one.max_requests) == (1, 700)
    assert (many.max_questions, many.max_requests) == (600, 50)
    text = writing.write(many, tmp_path / "study.toml").read_text("utf-8")
    assert "max_questions" not in text  # another number of folds would make it another one
    assert "max_requests = 50" in text
    assert load(tmp_path / "study.toml") == many
    assert study(lam="cv").differences(many.agreed)[-1] == (
        "limits.max_requests is 5200 here and 50 at the coordinator"
    )


def test_what_is_missing_is_named(tmp_path):
    given = settings()
    del given["data"]["target"]
    with pytest.raises(StudyError, match=r"data.target is missing: the column to be explained"):
        parse(given)
    with pytest.raises(StudyError, match=r"there is no file .*`unpooled study init` writes one"):
        load(tmp_path / "study.toml")
    (tmp_path / "study.toml").write_text("name = ")
    with pytest.raises(StudyError, match="is not a TOML file"):
        load(tmp_path / "study.toml")


def test_copies_may_differ_in_where_and_how_long_only():
    one, other = study(), study(address="other.org:1", results="elsewhere", limits={"grace": 5})
    assert one.digest == other.digest
    assert one.differences(other.agreed) == []
    another = study(lam=0.2)
    assert another.digest != one.digest
    assert one.differences(another.agreed) == ["model.lambda is 0.1 here and 0.2 at the coordinator"]


@pytest.mark.parametrize(
    ("given", "understood"),
    [
        ("https://study.org:9092", "study.org:9092"),
        ("https://study.org:9092/", "study.org:9092"),
        (" Study.org:9092", "Study.org:9092"),
        ("zürich.example:9092", "xn--zrich-kva.example:9092"),
        ("coordinator_1:9092", "coordinator_1:9092"),
        ("10.0.0.7:443", "10.0.0.7:443"),
        ("[::1]:9092", "[::1]:9092"),
    ],
)
def test_addresses_that_are_understood(given, understood):
    assert parse(settings(address=given)).address == understood


@pytest.mark.parametrize(
    "text",
    [
        'name = "x"\nsites = ' + 5000 * "[",
        'name = "x"\nsites = ["a"]\ndata.target = "y"\ndata.features = ["a"]\ndata.categorical.'
        + ".".join(2000 * "a")
        + " = 1",
        "data = " + 5000 * "{ a = ",
    ],
)
def test_deep_nesting_is_refused_in_words(tmp_path, text):
    (tmp_path / "study.toml").write_text(text)
    with pytest.raises(StudyError, match=r"study.toml is nested too deeply"):
        load(tmp_path / "study.toml")
