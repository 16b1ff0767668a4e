"""What a site says of its table before anything is computed, and whether the table fits the study.

Names and types of columns, levels of categorical ones, labels of the target, the number of rows: no value of
any row. A level or a class that fewer than ``minimum_rows`` rows have is not named, and a column in which
fewer stand out is said to be rare (``rare``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from unpooled._validation import closest, listing
from unpooled._version import versions
from unpooled._wording import counted
from unpooled.kernels.arrays import Float
from unpooled.preprocessing.levels import OTHER
from unpooled.study.config import Study
from unpooled.study.rare import (
    USUAL,
    deals_rows,
    in_folds,
    is_rare,
    rare_columns,
    rare_labels,
    without_rare_levels,
)
from unpooled.study.table import Table

HUGE = 1e100  # beyond it a number is taken for a typo
NUMBERS = ("number", "whole number", "true or false")
LABELS = ("text", "whole number", "true or false")


class Unfit(NamedTuple):
    """Why a table does not fit: what its owner is told, and what may be told to others (no values)."""

    here: str
    elsewhere: str


@dataclass(frozen=True)
class Description:
    """A site's table, as the coordinator sees it.

    Columns with rare values: ``rare`` have levels that become "other" here, ``merged`` some that become this
    site's most common one, and in ``left_out`` too few rows stand out.
    """

    site: str
    rows: int
    kinds: dict[str, str]
    levels: dict[str, list[Any]] = field(default_factory=dict)
    rare: list[str] = field(default_factory=list)
    merged: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
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
    unfit = [each.elsewhere for each in unfits(study, table, site)]
    found = rarities(study, site, table)
    levels: dict[str, list[Any]] = {}
    for name, given in study.categorical.items():
        if given == "agree" and name in columns and table.kinds[name] in LABELS and not table.missing(name):
            labels, _ = without_rare_levels(study, site, name, table.labels(name))
            named = set(labels) - ({OTHER} if found.levels[name] == OTHER else set())
            levels[name] = sorted(named, key=lambda level: (str(type(level)), level))
    classes: list[Any] = []
    if study.is_classifier and study.target in columns:
        labels = [value for value in table.labels(study.target) if value is not None]
        classes = sorted(set(labels) - rare_labels(study, site, labels))
    return Description(
        site=site,
        rows=table.n_rows,
        kinds={name: table.kinds[name] for name in columns},
        levels=levels,
        rare=[name for name, into in found.levels.items() if into == OTHER],
        merged=[name for name, into in found.levels.items() if into == USUAL],
        left_out=found.columns,
        classes=classes,
        missing=[name for name in columns if table.missing(name)],
        refuses=list(refuses),
        unfit=unfit,
        versions=versions(),
    )


class Rarities(NamedTuple):
    """Columns in which too few rows stand out; into what the rare levels of each categorical one go."""

    columns: list[str]
    levels: dict[str, str]


def rarities(study: Study, site: str, table: Table) -> Rarities:
    """The values of a site's table that few of its rows have."""
    there = [name for name in concerned(study, table)[1:] if name in table.columns]
    numeric = [n for n in there if n not in study.categorical and table.kinds[n] in NUMBERS]
    X = np.array([table.numbers(name) for name in numeric]).reshape(len(numeric), table.n_rows).T
    found = rare_columns(study, site, np.where(np.isinf(X), 0.0, X))
    levels = {}
    for name in there:
        if name in study.categorical and table.kinds[name] in LABELS and not table.missing(name):
            levels[name] = without_rare_levels(study, site, name, table.labels(name))[1]
    return Rarities([name for name, rare in zip(numeric, found, strict=True) if rare], levels)


def concerned(study: Study, table: Table) -> list[str]:
    """The columns that the study is about, the target first; the others are left alone."""
    features = list(table.columns) if study.features == "all" else list(study.features)
    return [study.target, *(name for name in features if name != study.target)]


def unfits(study: Study, table: Table, site: str = "") -> list[Unfit]:
    """All that keeps a site's table from taking part."""
    found = list(_rows(study, table))
    for name in concerned(study, table):
        if name not in table.columns:
            said = f"there is no column {name!r}"
            found.append(Unfit(said + closest(name, table.columns), said))
        elif name == study.target:
            found += _target(study, table, site)
        elif name in study.categorical:
            found += _categorical(study, table, name)
        else:
            found += _numeric(study, table, name)
    for name in study.categorical:
        if name not in table.columns and study.features == "all":
            said = f"there is no column {name!r}, which is categorical in the study"
            found.append(Unfit(said + closest(name, table.columns), said))
    return found or list(_rare(study, table, site))


def _rare(study: Study, table: Table, site: str) -> Iterator[Unfit]:
    """Rare values that cannot be left out, or are not to be."""
    found, least, folds = rarities(study, site, table), study.minimum_rows, in_folds(study)
    for name, into in found.levels.items():
        if into == OTHER and study.categorical[name] != "agree":
            yield _both(f"column {name!r} has only levels of fewer than {least} rows{folds}")
    if study.rare == "refuse":
        for name in found.columns:
            said = f"in column {name!r} fewer than {least} rows{folds} stand out from the rest"
            yield Unfit(f'{said}: data.rare = "drop" would leave it out', said)
        for name in (name for name, into in found.levels.items() if into):
            said = f"column {name!r} has levels that fewer than {least} rows have{folds}"
            yield Unfit(f'{said}: data.rare = "drop" would merge them', said)


def _rows(study: Study, table: Table) -> Iterator[Unfit]:
    if table.n_rows < study.minimum_rows:
        said = f"{counted(table.n_rows, 'row')}: limits.minimum_rows is {study.minimum_rows}"
        yield Unfit(said, f"fewer than {study.minimum_rows} rows")
    elif (
        study.lam == "cv"
        and study.intercept == "sites"
        and table.n_rows // int(study.folds) < study.minimum_rows
    ):
        said = f"its rows make folds of fewer than limits.minimum_rows = {study.minimum_rows}"
        yield Unfit(f"{said}, {counted(table.n_rows, 'row')} in {study.folds} folds: use fewer", said)


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
    yield from _huge(f"column {name!r}", table.numbers(name))


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


def _target(study: Study, table: Table, site: str) -> Iterator[Unfit]:
    name, kind, least = study.target, table.kinds[study.target], study.minimum_rows
    if table.missing(name):
        count = counted(table.missing(name), "missing value")
        said = f"the target {name!r} has {count}: leave those rows out"
        yield Unfit(said, f"the target {name!r} has missing values")
    if study.is_classifier:
        if kind not in LABELS:
            yield _both(f"the target {name!r} holds {kind}: {study.model} needs texts or whole numbers")
            return
        labels = [value for value in table.labels(name) if value is not None]
        classes = sorted(set(labels))
        if study.model == "logistic" and len(classes) > 2:
            said = f"the target {name!r} has {len(classes)} classes; logistic has two, multinomial more"
            yield Unfit(f"{said}: {listing(classes)}", said)
            return
        rare = sorted(rare_labels(study, site, labels))
        if rare:
            said = f"the target {name!r} has a class that fewer than {least} rows have{_in_folds(study)}"
            yield Unfit(f"{said}, {listing(rare)}: leave out these rows{_smaller(study)}", said)
        return
    if kind not in NUMBERS:
        yield _both(f"the target {name!r} holds {kind}: {study.model} needs numbers")
        return
    y = table.numbers(name)
    huge = list(_huge(f"the target {name!r}", y))
    yield from huge
    if study.model == "poisson" and (y < 0.0).any():
        yield _both(f"the target {name!r} has negative values: poisson needs counts")
    if not huge and np.isfinite(y).all() and is_rare(study, site, y):
        said = f"in the target {name!r} fewer than {least} rows stand out from the rest{_in_folds(study)}"
        yield Unfit(f"{said}: leave out these rows{_smaller(study)}", said)


def _huge(what: str, values: Float) -> Iterator[Unfit]:
    """Infinite values, and those whose sums of squares are."""
    if np.isinf(values).any():
        yield _both(f"{what} has infinite values")
        return
    beyond = np.flatnonzero(np.abs(values) > HUGE)
    if beyond.size:
        said = f"{what} has {counted(len(beyond), 'value')} beyond {HUGE:g}"
        yield Unfit(f"{said}, the first in row {beyond[0] + 1}: {values[beyond[0]]:g}", said)


def _in_folds(study: Study) -> str:
    return f", or half as many of them in a fold of {study.folds}" if deals_rows(study) else ""


def _smaller(study: Study) -> str:
    fewer = "fewer folds or " if deals_rows(study) else ""
    return f", or agree on {fewer}a smaller limits.minimum_rows"


def _both(said: str) -> Unfit:
    return Unfit(said, said)
