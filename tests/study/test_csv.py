"""CSV files as hospitals have them: separators, decimal commas, encodings, words for missing values."""

import gzip
import sys

import numpy as np
import pandas as pd
import pytest

from unpooled.study import csv_file, table, writing
from unpooled.study.config import StudyError, load, parse
from unpooled.study.csv_file import CsvOptions

PLAIN = "age,ward,smoker,ldl\n61.5,1,former,\n48,2,never,3.25\n70.25,3,,-1e-3\n"


def read(folder, text, options=None, encoding="utf-8", name="a.csv"):
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return table.read(path, options or CsvOptions())


def test_the_options_give_the_same_table(tmp_path):
    known = read(tmp_path, PLAIN)
    assert known.kinds == {"age": "number", "ward": "whole number", "smoker": "text", "ldl": "number"}
    german = PLAIN.replace(",", ";").replace(".", ",")
    with_words = german.replace("former;\n", "former;k. A.\n").replace("3;;", "3;k. A.;")
    for text, encoding in ((german, "utf-8"), (with_words, "latin-1"), (german, "utf-16")):
        options = CsvOptions(separator=";", decimal=",", encoding=encoding, missing=("", "k. A."))
        same(read(tmp_path, text, options, encoding), known)
    same(read(tmp_path, PLAIN.replace(",", "\t"), name="a.tsv"), known)
    same(read(tmp_path, "\ufeff" + PLAIN.replace("\n", "\r\n")), known)
    (tmp_path / "z.csv.gz").write_bytes(gzip.compress(PLAIN.encode()))
    same(table.read(tmp_path / "z.csv.gz"), known)


def same(one, other):
    assert one.kinds == other.kinds
    for name in other.columns:
        np.testing.assert_array_equal(one.columns[name], other.columns[name])


def test_text_columns_keep_leading_zeros(tmp_path):
    text = "zip,y\n04103,1\n10115,2\n"
    assert read(tmp_path, text).kinds["zip"] == "whole number"
    found = read(tmp_path, text, CsvOptions(text=("zip",)))
    assert found.labels("zip") == ["04103", "10115"]
    asked = parse(settings(features=["x", "zip"], categorical={"zip": ["04103", "10115"]}))
    assert read(tmp_path, text, asked.file).labels("zip") == ["04103", "10115"]


def test_numbers_are_read_to_the_last_bit(tmp_path):
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(size=200) * 10.0 ** rng.integers(-300, 300, 200), [0.1, 1 / 3]])
    pd.DataFrame({"x": values, "n": np.arange(202)}).to_csv(tmp_path / "x.csv", index=False)
    found = table.read(tmp_path / "x.csv")
    np.testing.assert_array_equal(found.numbers("x"), values)
    assert found.kinds == {"x": "number", "n": "whole number"}


def test_a_column_that_turns_to_text_late_is_text_from_the_start(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_file, "ROWS", 4)
    text = "code\n" + "".join(f"{i:03}\n" for i in range(10)) + "x9\n"
    assert read(tmp_path, text).labels("code") == [f"{i:03}" for i in range(10)] + ["x9"]
    booleans = read(tmp_path, "b,c\n" + "True,1\n" * 5 + ",2.5\n")
    assert booleans.kinds == {"b": "true or false", "c": "number"}
    assert booleans.missing("b") == 1


WRONG = {
    "one column": (
        "a;b;c\n1;2;3\n",
        r"it has one column, 'a;b;c': is the separator ';'\?.*separator = \";\"",
    ),
    "twice": ("a,b,a\n1,2,3\n", r"the column 'a' is there twice"),
    "ragged": ("a,b\n1,2\n1,2,3\n", r"line 3 has 3 values, and there are 2 columns"),
    "short": ("a,b\n1,2\n1\n", r"line 3 has 1 value, and there are 2 columns"),
    "no end": ('a,b\n1,"2\n1,2\n', r"line \d has a quotation mark that is not closed"),
    "no header": ("", r"is empty"),
    "no rows": ("a,b\n", r"has no rows"),
    "NUL": ("a,b\n1,\x00\n", r"NUL|not a CSV file"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_the_cause_is_named(tmp_path, kind):
    text, words = WRONG[kind]
    with pytest.raises(StudyError, match=words):
        read(tmp_path, text)


def test_an_encoding_that_is_not_the_files_is_named(tmp_path):
    with pytest.raises(StudyError, match=r'line 2 is not utf-8.*data.csv = \{ encoding = "latin-1" \}'):
        read(tmp_path, "a,b\n1,Zürich\n", encoding="latin-1")
    with pytest.raises(StudyError, match=r'encoding = "utf-16"'):
        read(tmp_path, PLAIN, encoding="utf-16")
    with pytest.raises(StudyError, match="there is no encoding 'klingon'"):
        parse(settings(csv={"encoding": "klingon"}))


def test_a_decimal_comma_is_hinted_at(tmp_path):
    from unpooled.study.description import unfits

    found = read(tmp_path, "y;x\n1;2,5\n2;3,5\n", CsvOptions(separator=";"))
    asked = parse(settings())
    [unfit] = [each for each in unfits(asked, found) if "'x'" in each.here]
    assert 'is the decimal a comma? data.csv = { decimal = "," }' in unfit.here
    assert "comma" not in unfit.elsewhere


def settings(**data):
    return {
        "name": "s",
        "sites": ["a", "b"],
        "data": {"target": "y", "features": ["x"], **data},
        "model": {"kind": "lasso", "lambda": 0.1},
        "limits": {"minimum_rows": 0},
    }


def test_options_are_keys_of_the_study_that_a_sites_copy_may_change(tmp_path):
    plain, german = parse(settings()), parse(settings(csv={"separator": ";", "decimal": ","}))
    assert german.csv == CsvOptions(separator=";", decimal=",")
    assert german.digest == plain.digest
    assert "csv =" not in writing.text(plain)
    path = writing.write(german, tmp_path / "study.toml")
    assert load(path) == german
    for csv, words in (
        ({"separator": ";;"}, "separator must be one character"),
        ({"decimal": ";"}, "decimal must be one of"),
        ({"separator": ",", "decimal": ","}, "cannot both be ','"),
        ({"seperator": ";"}, "'seperator' is none of"),
        (";", "must be a table such as"),
    ):
        with pytest.raises(StudyError, match=f"data.csv .*{words}"):
            parse(settings(csv=csv))


def test_neither_pandas_nor_polars_is_needed_for_csv(tmp_path, monkeypatch):
    for name in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    assert read(tmp_path, PLAIN).n_rows == 3


@pytest.mark.parametrize("without", ["polars", "pandas"])
def test_decimals_of_parquet_are_numbers(tmp_path, monkeypatch, without):
    import decimal

    import pyarrow as pa
    from pyarrow import parquet

    values = [decimal.Decimal("1.25"), None, decimal.Decimal("-3.50")]
    parquet.write_table(pa.table({"d": pa.array(values, pa.decimal128(8, 2))}), tmp_path / "d.parquet")
    monkeypatch.setitem(sys.modules, without, None)
    found = table.read(tmp_path / "d.parquet")
    assert found.kinds == {"d": "number"}
    np.testing.assert_array_equal(found.numbers("d"), [1.25, np.nan, -3.5])


def test_a_study_file_with_a_byte_order_mark_is_read(tmp_path):
    path = writing.write(parse(settings()), tmp_path / "study.toml")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert load(path) == parse(settings())
