"""Agree on the levels of categorical columns: the union of the levels that sites report.

This takes one round, or two if a site has levels too rare to name: that site then receives the union and
answers whether any of its rows has another level. Only then is there a level "other".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unpooled._ledger import Ledger, Traffic
from unpooled._validation import listing
from unpooled._wording import counted
from unpooled.kernels.arrays import Array, Float
from unpooled.preprocessing.site_frames import SiteFrames

OTHER = "other"
MISSING = "missing"
RARE = ("other", "refuse", "keep")


@dataclass(frozen=True)
class Categories:
    """A column's levels in order; ``reference`` is the one without a dummy, None where all have one.

    ``missing`` says what becomes of a missing value: an "error"; a "level" of its own, named "missing"; or
    "other", where that level was asked for and no site named it: it is then a level that was not agreed.
    """

    name: str
    levels: tuple[Any, ...]
    reference: Any
    has_other: bool
    missing: str = "error"

    @property
    def dummies(self) -> tuple[Any, ...]:
        """The levels that have a dummy column."""
        known = (*self.levels, MISSING) if self.missing == "level" else self.levels
        kept = tuple(level for level in known if self.reference is None or level != self.reference)
        return (*kept, OTHER) if self.has_other else kept

    @property
    def feature_names(self) -> tuple[str, ...]:
        """One name per dummy column."""
        return tuple(f"{self.name}={level}" for level in self.dummies)

    def one_hot(self, values: Array, where: str, unknown: str = "error") -> Float:
        """Dummies (n, levels) of the values; a level that was not agreed is "other", or an error."""
        place = {level: j for j, level in enumerate(self.dummies)}
        known = {*self.levels, *((None,) if self.missing == "level" else ())}
        out = np.zeros((len(values), len(place)))
        for i, value in enumerate(plain(values, self.name, where, self.missing != "error")):
            if value not in known:
                if not self.has_other or unknown != OTHER:
                    raise ValueError(
                        f"{where}, column {self.name!r}: the level {_word(value)!r} is not one that was "
                        f"agreed ({listing(self.levels)})"
                        + ("; unknown='other' takes it for one" if self.has_other else "")
                    )
                value = OTHER
            if _word(value) in place:
                out[i, place[_word(value)]] = 1.0
        return out


@dataclass(frozen=True, eq=False)
class Levels:
    """The result of ``agree_levels``, column by column."""

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
    missing: str = "error",
) -> Levels:
    """The levels of categorical columns over all sites; every site reports its own, in one round.

    Sites with levels that are too rare to be named are asked a second time, whether any of their rows is of a
    level that no site named.

    Parameters
    ----------
    frames : a mapping from client to frame, or one frame with a column ``client``.
    columns : the categorical ones.
    min_rows, rare : a level with fewer rows at a site is not named by it: with "other" the site says only
        that it has some, with "refuse" it complains, and "keep" names all. A level that another site names
        is its own level everywhere; where every rare level is one of these, there is no "other".
    reference : True leaves the first level of each column without a dummy, False none; a mapping names
        the level for some columns.
    missing : "error" refuses missing values; "level" makes them a level of their own, "missing", the last in
        order, to which ``min_rows`` and ``rare`` apply as to any other.
    """
    if missing not in ("error", "level"):
        raise ValueError(f"missing must be 'error' or 'level', got {missing!r}")
    if rare not in RARE:
        raise ValueError(f"rare must be 'other', 'refuse' or 'keep', got {rare!r}")
    if isinstance(min_rows, bool) or not isinstance(min_rows, int | np.integer) or min_rows < 0:
        raise ValueError(f"min_rows must be a whole number ≥ 0, got {min_rows!r}")
    sites = frames if isinstance(frames, SiteFrames) else SiteFrames.of(frames, client)
    if isinstance(columns, str):
        raise TypeError(f"columns must be a list of columns, got the single string {columns!r}")
    for name in [*columns, *(reference if isinstance(reference, Mapping) else ())]:
        if name not in sites.names or name not in columns:
            raise ValueError(f"there is no categorical column {name!r}; known: {listing(columns)}")
    found: list[Categories] = []
    notes: list[str] = []
    ledger, first = Ledger(kinds=("levels",)), Traffic(0, 0)
    told, answers, asked = Traffic(0, 0), 0, set[Any]()  # of the second round
    for name in columns:
        union: set[Any] = set()
        unsure: dict[Any, set[Any]] = {}
        for site, values in sites.column(name):
            own = plain(values, name, f"client {site!r}", missing == "level")
            named, some_rare = reported(own, min_rows, rare)
            if some_rare and rare == "refuse":
                raise ValueError(
                    f"client {site!r}, column {name!r}: {some_rare} of its levels "
                    f"{'has' if some_rare == 1 else 'have'} fewer than {min_rows} rows; rare='other' puts "
                    "them together, rare='keep' names them all the same"
                )
            if some_rare:
                unsure[site] = set(own)
            first = _more(first, named, 1, 1)
            union |= named
        has_other = any(own - union for own in unsure.values())
        asked |= set(unsure)
        answers += len(unsure)
        told = _more(told, union, 0, len(unsure))
        found.append(_ordered(str(name), union, has_other, _reference(reference, name), missing))
        notes.append(_said(found[-1], min_rows))
    ledger = ledger.after_round(len(sites.ids), first, Traffic(0, 0))
    if asked:
        ledger = ledger.after_round(len(asked), Traffic(answers, answers), told)
    return Levels(tuple(found), ledger, tuple(notes))


def _more(traffic: Traffic, levels: set[Any], flags: int, times: int) -> Traffic:
    """Add the names of levels and one byte per yes/no flag to the traffic, ``times`` times."""
    size = sum(len(str(_word(level)).encode()) for level in levels)
    return Traffic(traffic.floats + times * (len(levels) + flags), traffic.bytes + times * (size + flags))


def reported(values: list[Any], min_rows: int, rare: str) -> tuple[set[Any], int]:
    """The levels that a site names, and the number of levels that it withholds."""
    counts = Counter(values)
    if rare == "keep":
        return set(counts), 0
    named = {level for level, count in counts.items() if count >= min_rows}
    return named, len(counts) - len(named)


def plain(values: Array, name: Any, where: str, allow_missing: bool = False) -> list[Any]:
    """Levels as Python strings, integers or booleans, None for a missing one where that is allowed.

    Other numbers are refused.
    """
    out = [value.item() if isinstance(value, np.generic) else value for value in values]
    gone = [v is None or type(v).__name__ in ("NAType", "NaTType") or v != v for v in out]
    if any(gone) and not allow_missing:
        raise ValueError(
            f"{where}, column {name!r}: {counted(sum(gone), 'missing value')}; missing='level' makes them a "
            "level of their own, or leave the rows out"
        )
    for i, value in enumerate(out):
        if gone[i]:
            out[i] = None
        elif isinstance(value, float) and value.is_integer():
            out[i] = int(value)  # whole numbers beside missing ones come as floats
        elif not isinstance(value, str | int):
            raise TypeError(f"{where}, column {name!r}: levels are strings or whole numbers, not {value!r}")
    return out


def _word(level: Any) -> Any:
    """A level as columns name it."""
    return MISSING if level is None else level


def _ordered(name: str, named: set[Any], has_other: bool, reference: Any, missing: str) -> Categories:
    union = named - {None}
    if missing == "level" and None not in named:
        missing = "other"
    kinds = {str if isinstance(level, str) else int for level in union}
    if len(kinds) > 1:
        raise TypeError(f"column {name!r} has strings at some clients and numbers at others: make them alike")
    if not union:
        raise ValueError(f"column {name!r}: no site has a level with enough rows to name it; rare='keep'")
    if has_other and OTHER in union:
        raise ValueError(f"column {name!r} has a level {OTHER!r} of its own beside rare ones: rename it")
    if missing == "level" and MISSING in union:
        raise ValueError(f"column {name!r} has a level {MISSING!r} of its own beside missing ones: rename it")
    levels = tuple(sorted(union))
    if reference is True:
        reference = levels[0]
    known = (*levels, MISSING) if missing == "level" else levels
    if reference is not None and reference not in known:
        raise ValueError(f"column {name!r} has no level {reference!r} for a reference: {listing(known)}")
    return Categories(name, levels, reference, has_other, missing)


def _reference(given: Mapping[Any, Any] | bool, name: Any) -> Any:
    if isinstance(given, Mapping):
        return given.get(name, True)
    return True if given else None


def _said(found: Categories, min_rows: int) -> str:
    against = "no reference level" if found.reference is None else f"reference {found.reference!r}"
    other = f", and 'other' for levels of fewer than {min_rows} rows" if found.has_other else ""
    gone = f" and {MISSING!r}" if found.missing == "level" else ""
    return f"{found.name}: {counted(len(found.levels), 'level')}{gone}{other}, {against}."
