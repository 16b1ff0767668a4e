"""What a site says of its table before anything is computed, and whether the table fits the study.

Names and types of columns, levels of categorical ones, labels of the target, the number of rows: no value of
any row. A level that fewer than ``minimum_rows`` rows have is not named.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from unpooled.preprocessing.levels import reported
from unpooled.study.config import Study
from unpooled.study.table import Table
from unpooled.validation import closest, listing
from unpooled.versions import versions
from unpooled.wording import counted

NUMBERS = ("number", "whole number", "true or false")
LABELS = ("text", "whole number", "true or false")


class Unfit(NamedTuple):
    """Why a table does not fit: what its owner is told, and what may be told to others (no values)."""

    here: str
    elsewhere: str


@dataclass(frozen=True)
class Description:
    """A site's table, as the coordinator sees it."""

    site: str
    rows: int
    kinds: dict[str, str]
    levels: dict[str, list[Any]] = field(default_factory=dict)
    rare: list[str] = field(default_factory=list)
    classes: list[Any] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    refuses: list[str] = field(default_factory=list)
    unfit: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def describe(study: Study, site: str, table: Table, refuses: tuple[str, ...] = ()) -> Description:
    """The description of a site's table."""
    columns = [name for name in concerned(study, table) if name in table.columns]
    unfit = [each.elsewhere for each in unfits(study, table)]
    levels: dict[str, list[Any]] = {}
    rare: list[str] = []
    for name, given in study.categorical.items():
        if given == "agree" and name in columns and table.kinds[name] in LABELS:
            values = [value for value in table.labels(name) if value is not None]
            named, others = reported(values, study.minimum_rows, "other")
            levels[name] = sorted(named, key=lambda level: (str(type(level)), level))
            rare += [name] if others else []
    classes: list[Any] = []
    if study.is_classifier and study.target in columns:
        classes = sorted({value for value in table.labels(study.target) if value is not None})
    return Description(
        site=site,
        rows=table.n_rows,
        kinds={name: table.kinds[name] for name in columns},
        levels=levels,
        rare=rare,
        classes=classes,
        missing=[name for name in columns if table.missing(name)],
        refuses=list(refuses),
        unfit=unfit,
        versions=versions(),
    )


def concerned(study: Study, table: Table) -> list[str]:
    """The columns that the study is about, the target first; the others are left alone."""
    features = list(table.columns) if study.features == "all" else list(study.features)
    return [study.target, *(name for name in features if name != study.target)]


def unfits(study: Study, table: Table) -> list[Unfit]:
    """All that keeps a table from taking part."""
    found = list(_rows(study, table))
    for name in concerned(study, table):
        if name not in table.columns:
            said = f"there is no column {name!r}"
            found.append(Unfit(said + closest(name, table.columns), said))
        elif name == study.target:
            found += _target(study, table)
        elif name in study.categorical:
            found += _categorical(study, table, name)
        else:
            found += _numeric(study, table, name)
    for name in study.categorical:
        if name not in table.columns and study.features == "all":
            said = f"there is no column {name!r}, which is categorical in the study"
            found.append(Unfit(said + closest(name, table.columns), said))
    return found


def _rows(study: Study, table: Table) -> Iterator[Unfit]:
    if table.n_rows < study.minimum_rows:
        said = f"{counted(table.n_rows, 'row')}: limits.minimum_rows is {study.minimum_rows}"
        yield Unfit(said, f"fewer than {study.minimum_rows} rows")


def _numeric(study: Study, table: Table, name: str) -> Iterator[Unfit]:
    kind = table.kinds[name]
    if kind not in NUMBERS:
        remedy = "name it in data.categorical, or leave it out of data.features"
        said = f"column {name!r} holds {kind}, not numbers: {remedy}"
        yield Unfit(f"{said}; {table.hints[name]}" if name in table.hints else said, said)
        return
    if study.missing == "refuse" and table.missing(name):
        count = counted(table.missing(name), "missing value")
        yield Unfit(
            f'column {name!r} has {count}: data.missing = "mean" would fill in the mean of all sites',
            f"column {name!r} has missing values",
        )
    if np.isinf(table.numbers(name)).any():
        yield _both(f"column {name!r} has infinite values")


def _categorical(study: Study, table: Table, name: str) -> Iterator[Unfit]:
    kind, given = table.kinds[name], study.categorical[name]
    if table.missing(name):
        count = counted(table.missing(name), "missing value")
        remedy = "make them a level of their own, or leave the rows out"
        yield Unfit(f"column {name!r} has {count}: {remedy}", f"column {name!r} has missing values")
    if kind not in LABELS:
        yield _both(f"column {name!r} holds {kind}: levels are texts or whole numbers")
    elif given != "agree":
        expected = "text" if isinstance(given[0], str) else "whole number"
        if (kind == "text") != (expected == "text"):
            yield _both(f"column {name!r} holds {kind}, but the study's levels of it are {expected}s")
            return
        unknown = sorted({value for value in table.labels(name) if value is not None} - set(given))
        if unknown:
            hint = closest(unknown[0], given) if len(unknown) == 1 else ""
            known = f"the study has {listing(given)}{hint}"
            yield Unfit(
                f"column {name!r} has {listing(unknown)}, but {known}",
                f"column {name!r} has {counted(len(unknown), 'level')} that the study does not have",
            )


def _target(study: Study, table: Table) -> Iterator[Unfit]:
    name, kind = study.target, table.kinds[study.target]
    if table.missing(name):
        count = counted(table.missing(name), "missing value")
        said = f"the target {name!r} has {count}: leave those rows out"
        yield Unfit(said, f"the target {name!r} has missing values")
    if study.is_classifier:
        if kind not in LABELS:
            yield _both(f"the target {name!r} holds {kind}: {study.model} needs texts or whole numbers")
            return
        classes = sorted({value for value in table.labels(name) if value is not None})
        if study.model == "logistic" and len(classes) > 2:
            said = f"the target {name!r} has {len(classes)} classes; logistic has two, multinomial more"
            yield Unfit(f"{said}: {listing(classes)}", said)
        return
    if kind not in NUMBERS:
        yield _both(f"the target {name!r} holds {kind}: {study.model} needs numbers")
        return
    y = table.numbers(name)
    if np.isinf(y).any():
        yield _both(f"the target {name!r} has infinite values")
    if study.model == "poisson" and (y < 0.0).any():
        yield _both(f"the target {name!r} has negative values: poisson needs counts")


def _both(said: str) -> Unfit:
    return Unfit(said, said)
