"""Values that few rows of a site have: which columns have them, and what becomes of rare levels.

A gradient's entry for a 0/1 column that one patient has is that patient's residual, and a few of them give
the whole row away. So a column in which fewer than ``minimum_rows`` rows stand out takes no part, and rows of
a rare level get another one, before anything about them leaves the site. Both are decided on all of a site's
rows. In a cross-validation each fold and the rows without it count too, for answers about two of these tell
of the third; there half as many rows are enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from unpooled._wording import counted, joined
from unpooled.data.folds import BySite, Dealt, Folds
from unpooled.kernels.arrays import Array, Float
from unpooled.preprocessing.levels import OTHER
from unpooled.study.config import Study
from unpooled.study.effective import few_carry, half_of

USUAL = "usual"


def own_folds(study: Study) -> tuple[Folds, int] | None:
    """The folds that a study has, by its own settings, and how many there are."""
    if study.lam != "cv":
        return None
    if isinstance(study.folds, str):
        return BySite(), len(study.sites)
    return Dealt(study.folds, study.seed, study.fold_rows), study.folds


def deals_rows(study: Study) -> bool:
    """Whether folds divide the rows of a site."""
    found = own_folds(study)
    return found is not None and not isinstance(found[0], BySite)


def row_sets(study: Study, site: str, n_rows: int) -> Iterator[tuple[Array, int]]:
    """The rows that statistics are about, and how many must stand out: all rows, each fold and its rest."""
    least = study.minimum_rows
    yield np.arange(n_rows), least
    found = own_folds(study)
    if found is not None and deals_rows(study):
        folds, half = found[0].of(0, site, n_rows), half_of(least)
        for f in range(found[1]):
            yield np.flatnonzero(folds == f), half
            yield np.flatnonzero(folds != f), half


def rare_columns(study: Study, site: str, X: Float) -> Array:
    """For each column of X (n, p), NaN for missing values, whether rows stand out in it, and too few.

    Rows stand out where they are not zero, where they differ from the median, or because they lie so far
    from it that the others are as good as equal. A column in which no row stands out tells nothing of any.
    """
    gone = np.isnan(X)
    observed = np.where(gone.all(axis=0), 0.0, X)
    middle = np.nanmedian(observed, axis=0) if X.shape[1] else np.zeros(0)
    apart = np.where(gone, 0.0, np.abs(X - middle))
    filled = ~gone & (X != 0.0)
    found = np.zeros(X.shape[1], dtype=bool)
    for rows, least in row_sets(study, site, len(X)):
        half = min(least, len(rows) / 2)
        for what, limit in ((~gone, least), (filled, least), (apart, half)):
            count = np.count_nonzero(what[rows], axis=0)
            found |= (count > 0) & (count < limit)
        found |= few_carry(apart[rows], least)
    return found


def is_rare(study: Study, site: str, values: Float) -> bool:
    """Whether too few rows stand out in a column."""
    return bool(rare_columns(study, site, values[:, None])[0])


def rare_labels(study: Study, site: str, labels: Sequence[Any]) -> set[Any]:
    """The labels that some rows have, and too few."""
    names = list(dict.fromkeys(labels))
    place = {label: c for c, label in enumerate(names)}
    codes = np.array([place[label] for label in labels], dtype=np.int64)
    found: set[Any] = set()
    for rows, least in row_sets(study, site, len(codes)):
        counts = np.bincount(codes[rows], minlength=len(names))
        found |= {names[c] for c in np.flatnonzero((counts > 0) & (counts < least))}
    return found


def without_rare_levels(study: Study, site: str, name: str, labels: Sequence[Any]) -> tuple[list[Any], str]:
    """A column's levels with those that are rare merged, and into what: "" (none are), "other" or "usual".

    They are "other" where levels are agreed on and they have enough rows together; else they become the
    site's most common level, so that no level and no rest of a level is left with too few rows.
    """
    rare = rare_labels(study, site, labels)
    if not rare:
        return list(labels), ""
    usual = Counter(label for label in labels if label not in rare).most_common(1)
    merged = [OTHER if label in rare else label for label in labels]
    is_open = study.categorical[name] == "agree"
    if not usual or (is_open and OTHER not in rare_labels(study, site, merged)):
        return merged, OTHER
    return [usual[0][0] if label in rare else label for label in labels], USUAL


def in_folds(study: Study) -> str:
    """What follows "fewer than 10 rows" where rows are dealt into folds."""
    if not deals_rows(study):
        return ""
    return f" (or some, but fewer than {half_of(study.minimum_rows)}, in a fold or outside it)"


def without_folds(what: str) -> str:
    """How to keep what is rare in folds alone."""
    return f"fewer model.folds may keep {what}, a fixed model.lambda does"


def why_left_out(study: Study, site: str, name: str, values: Float) -> str:
    """A sentence to a site's owner on a column of its table that is rare."""
    least = study.minimum_rows
    if is_rare(replace(study, lam=0.0), site, np.where(np.isinf(values), 0.0, values)):
        return f"column {name!r} will be left out: fewer than {least} rows stand out in it here"
    return (
        f"column {name!r} will be left out: in a fold here, or outside it, some rows, but fewer "
        f"than {half_of(least)}, stand out in it; {without_folds('it')}"
    )


def why_merged(study: Study, site: str, name: str, labels: Sequence[Any]) -> str:
    """A sentence to a site's owner on the rare levels of a column, with their rows; it stays at the site."""
    least, rows = study.minimum_rows, Counter(labels)
    rare = sorted(rare_labels(study, site, labels), key=lambda level: (-rows[level], str(level)))
    merged, into = without_rare_levels(study, site, name, labels)
    if into == USUAL:
        becomes = f"{merged[list(labels).index(rare[0])]!r}, the most common level here"
    else:
        becomes = f"{OTHER!r}"
    listed = joined([f"{level!r} ({counted(rows[level], 'row')})" for level in rare])
    what, count = ("level", "counts") if len(rare) == 1 else ("levels", "count")
    rule = f"levels of fewer than {least} rows{in_folds(study)} are merged"
    said = f"column {name!r}: {what} {listed} {count} as {becomes}, because {rule}"
    if rows[rare[0]] >= least:
        said += f"; {without_folds(f'those of {least} rows or more')}"
    return said
