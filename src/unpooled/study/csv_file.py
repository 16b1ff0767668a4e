"""CSV files, read the same on every machine: the options of a file, its columns, and why it does not parse.

Numbers are the nearest floats to what is written. Rows are converted some at a time; a column that turns out
to be text after all is read again from the start, so that 007 stays what it is.
"""

from __future__ import annotations

import codecs
import csv
import gzip
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from unpooled._wording import counted
from unpooled.kernels.arrays import Array

MISSING = (
    "",
    "NA",
    "N/A",
    "n/a",
    "NaN",
    "nan",
    "-nan",
    "-NaN",
    "NULL",
    "null",
    "None",
    "<NA>",
    "#N/A",
    "#NA",
)
TRUTH = {"True": 1.0, "TRUE": 1.0, "true": 1.0, "False": 0.0, "FALSE": 0.0, "false": 0.0}
SIGNS = {ord(each): None for each in "+- "}  # that whole numbers may have
ROWS = 20_000  # that are held as texts at a time
SEPARATORS = (";", "\t", "|", ",")


class CsvError(ValueError):
    """Why a file does not parse, in words that follow its name."""


@dataclass(frozen=True)
class CsvOptions:
    """How a file is written: ``separator`` None goes by its name; columns ``text`` are never numbers."""

    separator: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    missing: tuple[str, ...] = MISSING
    text: tuple[str, ...] = ()

    def plain(self) -> dict[str, Any]:
        """What is not as usual, as ``study.toml`` has it."""
        usual = asdict(CsvOptions())
        return {name: value for name, value in asdict(self).items() if value != usual[name]}


def columns(path: Path, options: CsvOptions) -> dict[str, tuple[Array, str]]:
    """Each column's values and what it holds (see ``Table``)."""
    texts = set(options.text)
    while True:
        found, turned = _read(path, options, texts)
        if not turned:
            return found
        texts |= turned


def has_decimal_comma(values: Array) -> bool:
    """Whether the texts of a column would be numbers, were their commas points."""
    some = [value for value in values[:ROWS] if value is not None]
    return any("," in value for value in some) and bool(list(_as_numbers(some, ",")))


def _read(path: Path, options: CsvOptions, texts: set[str]) -> tuple[dict[str, tuple[Array, str]], set[str]]:
    """The columns, or those that have to be read again as texts."""
    try:
        with _opened(path, options.encoding) as file:
            rows = _rows(file, options.separator or ("\t" if ".tsv" in path.name.lower() else ","))
            names = _header(rows)
            parts: list[list[tuple[Array, str]]] = [[] for _ in names]
            while some := list(islice(rows, ROWS)):
                for name, own, cells in zip(names, parts, zip(*some, strict=True), strict=True):
                    own.append(_converted(cells, options, is_text=name in texts))
    except UnicodeError:
        raise CsvError(_not_so_encoded(path, options.encoding)) from None
    if not parts[0]:
        raise CsvError("has no rows")
    kinds = {name: {kind for _, kind in own if kind} for name, own in zip(names, parts, strict=True)}
    turned = {name for name, each in kinds.items() if "text" in each and name not in texts and len(each) > 1}
    turned |= {name for name, each in kinds.items() if "true or false" in each and len(each) > 1} - texts
    found = {n: _joined(own, kinds[n]) for n, own in zip(names, parts, strict=True) if n not in turned}
    return found, turned


def _opened(path: Path, encoding: str) -> IO[str]:
    encoding = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding=encoding, newline="")
    return path.open("r", encoding=encoding, newline="")


def _rows(file: IO[str], separator: str) -> Iterator[list[str]]:
    """The rows that are not blank, each with as many cells as the first."""
    reader = csv.reader(file, delimiter=separator, strict=True)
    width, began = 0, 1
    while True:
        began = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if "unexpected end of data" in str(error):
                raise CsvError(f"line {began} has a quotation mark that is not closed") from None
            raise CsvError(f"line {reader.line_num} is not a line of a CSV file: {error}") from None
        if not row:
            continue
        if "\0" in "".join(row):
            raise CsvError(f"line {began} holds a NUL character: this is not a CSV file")
        width = width or len(row)
        if len(row) != width:
            has, are = counted(len(row), "value"), counted(width, "column")
            raise CsvError(f"line {began} has {has}, and there are {are}")
        yield row


def _header(rows: Iterator[list[str]]) -> list[str]:
    first = next(rows, None)
    if first is None:
        raise CsvError("is empty")
    names = [name.strip() or f"Unnamed: {j}" for j, name in enumerate(first)]
    twice = next((name for j, name in enumerate(names) if name in names[:j]), None)
    if twice is not None:
        raise CsvError(f"cannot be used: the column {twice!r} is there twice")
    other = next((each for each in SEPARATORS if each in names[0]), None)
    if len(names) == 1 and other is not None:
        shown = "\\t" if other == "\t" else other
        raise CsvError(
            f"cannot be read: it has one column, {names[0]!r:.80}: is the separator {other!r}? "
            f'data.csv = {{ separator = "{shown}" }} in this site\'s study.toml says so'
        )
    return names


def _converted(cells: tuple[str, ...], options: CsvOptions, *, is_text: bool) -> tuple[Array, str]:
    """Some values of a column, and what they are; "" where all are missing."""
    words = frozenset(options.missing)
    gone = np.fromiter(map(words.__contains__, cells), bool, len(cells))
    if gone.all():
        return np.full(len(cells), np.nan), ""
    if not is_text:
        there = [cell for cell in cells if cell not in words] if gone.any() else list(cells)
        for kind, values in _as_numbers(there, options.decimal):
            column = np.full(len(cells), np.nan)
            column[~gone] = values
            return column, kind
    texts: Array = np.array(cells, dtype=object)
    texts[gone] = None
    return texts, "text"


def _as_numbers(cells: list[str], decimal: str) -> Iterator[tuple[str, list[float]]]:
    """What the values are, as numbers; nothing where they are none."""
    if all(cell in TRUTH for cell in cells):
        yield "true or false", [TRUTH[cell] for cell in cells]
        return
    together = "".join(cells)
    if "_" in together or not together.isascii():  # float() takes 1_000
        return
    if decimal != ".":
        if "." in together:
            return
        cells = [cell.replace(decimal, ".") for cell in cells]
    try:
        values = list(map(float, cells))
    except ValueError:
        return
    is_whole = together.translate(SIGNS).isdecimal()
    yield "whole number" if is_whole else "number", values


def _joined(parts: list[tuple[Array, str]], kinds: set[str]) -> tuple[Array, str]:
    if "text" in kinds:
        of_text = [values if kind else np.full(len(values), None, dtype=object) for values, kind in parts]
        return np.concatenate(of_text), "text"
    column = np.concatenate([values for values, _ in parts])
    if kinds in ({"whole number"}, {"true or false"}):
        return column, next(iter(kinds))
    gone = np.isnan(column)
    # whole numbers beside missing ones are often written with a point
    is_whole = (
        gone.any() and not gone.all() and np.isfinite(column[~gone]).all() and not (column[~gone] % 1.0).any()
    )
    return column, "whole number" if is_whole else "number"


def _not_so_encoded(path: Path, encoding: str) -> str:
    """Which line is not in the encoding, and which encoding it may be."""
    with gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb") as file:
        text = file.read()
    if text[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        number, likely = 1, "utf-16"
    else:
        try:
            text.decode(encoding)
            number = 1
        except UnicodeDecodeError as error:
            number = text[: error.start].count(b"\n") + 1
        likely = "latin-1" if encoding != "latin-1" else "utf-8"
    return (
        f"cannot be read: line {number} is not {encoding}. If the file is, say, {likely}: "
        f'data.csv = {{ encoding = "{likely}" }} in this site\'s study.toml'
    )
