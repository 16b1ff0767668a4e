"""Convert scikit-learn's splitters and splits to one fold number per row."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from unpooled._wording import counted
from unpooled.data.federated import FederatedData
from unpooled.kernels.arrays import Array

ACCEPTED = "such as KFold, StratifiedKFold, GroupKFold, LeaveOneGroupOut or PredefinedSplit"


def is_splitter(cv: Any) -> bool:
    """Whether ``cv`` is an object like scikit-learn's KFold."""
    return not isinstance(cv, type) and hasattr(cv, "split") and hasattr(cv, "get_n_splits")


def of_splitter(cv: Any, data: FederatedData, number: Array) -> Array:
    """The fold in which a splitter tests each row of the data.

    It is shown the rows in the caller's order (``number``), as scikit-learn would show it the pooled rows:
    X, the targets (codes of the classes for a classifier) and, where it asks for groups, the client ids.
    """
    order = np.argsort(number, kind="stable")
    X = data.X if (number[1:] > number[:-1]).all() else data.X[order]  # avoid copying a large X
    given: tuple[Any, ...] = (X, data.y[order])
    if _asks_for_groups(cv):
        given = (*given, np.repeat(np.array(data.ids), data.sizes)[order])
    folds = np.empty(data.n_rows, dtype=np.int64)
    folds[order] = of_splits(list(cv.split(*given)), data.n_rows, f"cv={type(cv).__name__}(…)")
    return folds


def of_splits(splits: Any, n_rows: int | None = None, name: str = "cv") -> Array:
    """The number of the split (train, test) in which each row is tested; None: of the rows that they name."""
    if n_rows is None:
        n_rows = 1 + max((int(np.max(part, initial=-1)) for split in splits for part in split), default=-1)
    tests = [_rows(test, n_rows) for _, test in splits]
    times = np.bincount(np.concatenate([*tests, np.empty(0, dtype=np.int64)]), minlength=n_rows)
    never, often = int(np.sum(times == 0)), int(np.sum(times > 1))
    if never or often:
        found = [f"{counted(never, 'row')} never"] if never else []
        found += [f"{counted(often, 'row')} more than once"] if often else []
        raise ValueError(
            f"{name} tests {' and '.join(found)}, but every row must be tested in exactly one split: "
            f"give a splitter {ACCEPTED}"
        )
    folds = np.empty(n_rows, dtype=np.int64)
    for f, ((train, _), test) in enumerate(zip(splits, tests, strict=True)):
        trained = np.bincount(_rows(train, n_rows), minlength=n_rows)
        trained[test] = 1 - trained[test]
        if (trained != 1).any():
            raise ValueError(
                f"{name}: split {f} must train on all rows that it does not test, and on no others; "
                f"it differs in {counted(int(np.sum(trained != 1)), 'row')}"
            )
        folds[test] = f
    return folds


def _rows(given: Any, n_rows: int) -> Array:
    """Row numbers, from 0."""
    rows = np.asarray(given)
    if rows.size and (rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= n_rows):
        raise ValueError(f"cv: a split names row {rows.max()}, but there are {n_rows} rows, from 0")
    return rows.astype(np.int64)


def _asks_for_groups(cv: Any) -> bool:
    """Whether ``split`` uses groups: scikit-learn's own splitters say so, others by an argument."""
    if hasattr(cv, "get_metadata_routing"):
        return cv.get_metadata_routing().split.requests.get("groups") is True
    return "groups" in inspect.signature(cv.split).parameters
