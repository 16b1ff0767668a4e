"""Levels of categorical columns, agreed over sites in one round: the union of what sites report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unpooled.arrays import Array, Float
from unpooled.ledger import Ledger, Traffic
from unpooled.preprocessing.sites import Sites
from unpooled.validation import listing
from unpooled.wording import counted

OTHER = "other"
RARE = ("other", "refuse", "keep")


@dataclass(frozen=True)
class Categories:
    """A column's levels in order; ``reference`` is the one without a dummy, None where all have one."""

    name: str
    levels: tuple[Any, ...]
    reference: Any
    has_other: bool

    @property
    def dummies(self) -> tuple[Any, ...]:
        """The levels that have a dummy column."""
        kept = tuple(level for level in self.levels if self.reference is None or level != self.reference)
        return (*kept, OTHER) if self.has_other else kept

    @property
    def feature_names(self) -> tuple[str, ...]:
        """One name a dummy."""
        return tuple(f"{self.name}={level}" for level in self.dummies)

    def one_hot(self, values: Array, where: str, unknown: str = "error") -> Float:
        """Dummies (n, levels) of the values; a level that was not agreed is "other", or an error."""
        place = {level: j for j, level in enumerate(self.dummies)}
        known = set(self.levels)
        out = np.zeros((len(values), len(place)))
        for i, value in enumerate(plain(values, self.name, where)):
            if value not in known:
                if not self.has_other or unknown != OTHER:
                    raise ValueError(
                        f"{where}, column {self.name!r}: the level {value!r} is not one that was agreed "
                        f"({listing(self.levels)})"
                        + ("; unknown='other' takes it for one" if self.has_other else "")
                    )
                value = OTHER
            if value in place:
                out[i, place[value]] = 1.0
        return out


@dataclass(frozen=True, eq=False)
class Levels:
    """What ``agree_levels`` found, column by column."""

    columns: tuple[Categories, ...]
    ledger: Ledger
    notes: tuple[str, ...]

    def __getitem__(self, name: Any) -> Categories:
        for each in self.columns:
            if each.name == str(name):
                return each
        known = listing(c.name for c in self.columns)
        raise KeyError(f"no levels were agreed for column {name!r}; known: {known}")


def agree_levels(
    frames: Any,
    columns: Sequence[Any],
    *,
    client: Any = None,
    min_rows: int = 10,
    rare: str = "other",
    reference: Mapping[Any, Any] | bool = True,
) -> Levels:
    """The levels of categorical columns over all sites; every site reports its own, in one round.

    Parameters
    ----------
    frames : a mapping from client to frame, or one frame with a column ``client``.
    columns : the categorical ones.
    min_rows, rare : a level with fewer rows at a site is not named by it: with "other" the site says only
        that it has some, with "refuse" it complains, and "keep" names all. A level that another site names
        is its own level everywhere.
    reference : True leaves the first level of each column without a dummy, False none; a mapping names
        the level for some columns.
    """
    if rare not in RARE:
        raise ValueError(f"rare must be 'other', 'refuse' or 'keep', got {rare!r}")
    if isinstance(min_rows, bool) or not isinstance(min_rows, int | np.integer) or min_rows < 0:
        raise ValueError(f"min_rows must be a whole number ≥ 0, got {min_rows!r}")
    sites = frames if isinstance(frames, Sites) else Sites.of(frames, client)
    if isinstance(columns, str):
        raise TypeError(f"columns must be a list of columns, got the single string {columns!r}")
    for name in [*columns, *(reference if isinstance(reference, Mapping) else ())]:
        if name not in sites.names or name not in columns:
            raise ValueError(f"there is no categorical column {name!r}; known: {listing(columns)}")
    found: list[Categories] = []
    notes: list[str] = []
    sent, size = 0, 0
    for name in columns:
        union: set[Any] = set()
        has_other = False
        for site, values in sites.column(name):
            named, some_rare = reported(plain(values, name, f"client {site!r}"), min_rows, rare)
            if some_rare and rare == "refuse":
                raise ValueError(
                    f"client {site!r}, column {name!r}: {some_rare} of its levels have fewer than {min_rows} "
                    "rows; rare='other' puts them together, rare='keep' names them all the same"
                )
            has_other |= bool(some_rare)
            sent += len(named) + 1
            size += sum(len(str(level).encode()) for level in named) + 1
            union |= named
        found.append(_ordered(str(name), union, has_other, _reference(reference, name)))
        notes.append(_said(found[-1], min_rows))
    up = Traffic(sent, size)
    ledger = Ledger(kinds=("levels",)).after_round(len(sites.ids), up, Traffic(0, 0))
    return Levels(tuple(found), ledger, tuple(notes))


def reported(values: list[Any], min_rows: int, rare: str) -> tuple[set[Any], int]:
    """The levels that a site names, and how many it does not name."""
    counts = Counter(values)
    if rare == "keep":
        return set(counts), 0
    named = {level for level, count in counts.items() if count >= min_rows}
    return named, len(counts) - len(named)


def plain(values: Array, name: Any, where: str) -> list[Any]:
    """Levels as Python strings, integers or booleans; missing ones and other numbers are refused."""
    out = [value.item() if isinstance(value, np.generic) else value for value in values]
    gone = sum(v is None or type(v).__name__ in ("NAType", "NaTType") or v != v for v in out)
    if gone:
        raise ValueError(
            f"{where}, column {name!r}: {gone} missing value{'s' if gone > 1 else ''}; "
            "make them a level of their own, or leave the rows out"
        )
    for i, value in enumerate(out):
        if isinstance(value, float) and value.is_integer():
            out[i] = int(value)  # whole numbers beside missing ones come as floats
        elif not isinstance(value, str | int):
            raise TypeError(f"{where}, column {name!r}: levels are strings or whole numbers, not {value!r}")
    return out


def _ordered(name: str, union: set[Any], has_other: bool, reference: Any) -> Categories:
    kinds = {str if isinstance(level, str) else int for level in union}
    if len(kinds) > 1:
        raise TypeError(f"column {name!r} has strings at some clients and numbers at others: make them alike")
    if not union:
        raise ValueError(f"column {name!r}: no site has a level with enough rows to name it; rare='keep'")
    if has_other and OTHER in union:
        raise ValueError(f"column {name!r} has a level {OTHER!r} of its own beside rare ones: rename it")
    levels = tuple(sorted(union))
    if reference is True:
        return Categories(name, levels, levels[0], has_other)
    if reference is not None and reference not in union:
        raise ValueError(f"column {name!r} has no level {reference!r} for a reference: {listing(levels)}")
    return Categories(name, levels, reference, has_other)


def _reference(given: Mapping[Any, Any] | bool, name: Any) -> Any:
    if isinstance(given, Mapping):
        return given.get(name, True)
    return True if given else None


def _said(found: Categories, min_rows: int) -> str:
    against = "no reference level" if found.reference is None else f"reference {found.reference!r}"
    other = f", and 'other' for levels of fewer than {min_rows} rows" if found.has_other else ""
    return f"{found.name}: {counted(len(found.levels), 'level')}{other}, {against}."
