"""A site's rows as they lie in its file: CSV, or Parquet, which pandas or polars reads, whichever can."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from unpooled.kernels.arrays import Array, Float
from unpooled.study.config import StudyError
from unpooled.study.csv_file import CsvError, CsvOptions, has_decimal_comma
from unpooled.study.csv_file import columns as csv_columns

CSV, PARQUET = (".csv", ".csv.gz", ".tsv"), (".parquet", ".pq")


@dataclass(frozen=True, eq=False)
class Table:
    """Columns by name: numbers as float64 with NaN for missing ones, texts as objects with None.

    ``kinds`` says of each what it is: "number", "whole number", "true or false", "text", or else the type
    that the file has, which a study cannot use.
    """

    path: Path
    columns: dict[str, Array]
    kinds: dict[str, str]
    n_rows: int
    hints: dict[str, str] = field(default_factory=dict)  # why a column may not be what it should

    def missing(self, name: str) -> int:
        """How many values of a column are missing."""
        values = self.columns[name]
        if values.dtype.kind == "f":
            return int(np.isnan(values).sum())
        return sum(value is None for value in values)

    def numbers(self, name: str) -> Float:
        """A column of numbers."""
        return np.asarray(self.columns[name], dtype=np.float64)

    def labels(self, name: str) -> list[Any]:
        """A column's values as texts or whole numbers, None for missing ones; other numbers as they are."""
        values = self.columns[name]
        if values.dtype.kind != "f":
            return list(values)
        return [None if v != v else int(v) if v.is_integer() else v for v in values.tolist()]


def read(path: Path, options: CsvOptions = CsvOptions()) -> Table:  # noqa: B008  # frozen
    """Read a site's file; ``options`` say how a CSV file is written."""
    if not path.is_file():
        raise StudyError(f"there is no file {path}")
    name = path.name.lower()
    if not name.endswith(CSV + PARQUET):
        known = ", ".join(CSV + PARQUET)
        raise StudyError(f"{path} is neither CSV nor Parquet by its name: it should end in one of {known}")
    try:
        found = csv_columns(path, options) if name.endswith(CSV) else _parquet(path)
    except StudyError:
        raise
    except CsvError as error:
        raise StudyError(f"{path} {error}") from None
    except Exception as error:  # what a library says of a file that it cannot read
        said = (str(error) or type(error).__name__).splitlines()[0]
        raise StudyError(f"{path} cannot be read: {said}") from None
    values = {column: each for column, (each, _) in found.items()}
    n_rows = len(next(iter(values.values()), ()))
    if not n_rows:
        raise StudyError(f"{path} has no rows")
    kinds = {column: kind for column, (_, kind) in found.items()}
    hints = {
        column: 'is the decimal a comma? data.csv = { decimal = "," } in this site\'s study.toml says so'
        for column, kind in kinds.items()
        if name.endswith(CSV) and kind == "text" and has_decimal_comma(values[column])
    }
    return Table(path, values, kinds, n_rows, hints)


def _parquet(path: Path) -> dict[str, tuple[Array, str]]:
    frame = _frame(path)
    return {str(column): _column(frame[column]) for column in frame.columns}


def _frame(path: Path) -> Any:
    """What the first library reads that is there, with what it needs."""
    for library in ("pandas", "polars"):
        with contextlib.suppress(ImportError):
            return import_module(library).read_parquet(path)
    raise StudyError(f"{path}: Parquet needs polars, or pandas with pyarrow: pip install pandas pyarrow")


def _column(values: Any) -> tuple[Array, str]:
    """A column of either library as an array, and what it holds."""
    array = np.asarray(values.to_numpy())
    if array.dtype.kind in "biu":
        return array.astype(np.float64), "true or false" if array.dtype.kind == "b" else "whole number"
    if array.dtype.kind == "f":
        gone = np.isnan(array)
        # whole numbers beside missing ones come as floats
        is_whole = gone.any() and not gone.all() and not (array[~gone] % 1.0).any()
        return array.astype(np.float64), "whole number" if is_whole else "number"
    plain = [None if _is_missing(each) else each for each in values.to_list()]
    kinds = {type(each) for each in plain if each is not None}
    if kinds == {str}:
        return np.array(plain, dtype=object), "text"
    if kinds <= {bool, int, float, Decimal}:
        kind = "true or false" if kinds == {bool} else "whole number" if kinds == {int} else "number"
        return np.array([np.nan if each is None else float(each) for each in plain]), kind
    return np.array(plain, dtype=object), " and ".join(sorted(each.__name__ for each in kinds))


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value
