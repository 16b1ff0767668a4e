"""``prepare``: columns centred, scaled and filled with what all sites together say, in one round."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from unpooled._ledger import Ledger
from unpooled._validation import closest, column, refuse_copy
from unpooled._wording import numbered
from unpooled.data.federated import FederatedData
from unpooled.preprocessing.moments import Moments, constant_columns, moments
from unpooled.preprocessing.prepared import Prepared
from unpooled.preprocessing.transform import transformed

POLICIES = ("refuse", "mean")


def prepare(
    data: FederatedData,
    *,
    center: bool | None = None,
    scale: bool = True,
    missing: str = "refuse",
    site_intercepts: bool = False,
    unpenalised: Iterable[int | str] = (),
    engine: Any = None,
) -> Prepared:
    """Rows (x − shift)/scale, ready for solve, path and cross_validate, and the way back to raw units.

    Parameters
    ----------
    data : rows; with ``FederatedData.from_…(allow_missing=True)`` they may have missing values (NaN).
    center : whether to take off the pooled means. None: where X is dense. CSR rows are never centred, which
        would fill them; with an intercept in the problem the fit is the same up to the penalty's scale.
    scale : whether to divide by the pooled standard deviations of the observed values; constant columns keep
        scale 1.
    missing : "refuse", or "mean" for the pooled mean of the observed values, for new rows too: the means are
        asked for whether or not these rows miss a value. Values are filled in after scaling: a column of
        which a share q was observed has variance q, not one, and a penalty on it is 1/√q times that after
        ``SimpleImputer`` and ``StandardScaler``, which scale the filled column.
    site_intercepts : whether ``Prepared.problem`` has an intercept for every site.
    unpenalised : columns, by number or name, that ``Prepared.problem`` leaves without a penalty.
    """
    if missing not in POLICIES:
        raise ValueError(f"missing must be 'refuse' or 'mean', got {missing!r}")
    for name, value in (("center", center), ("scale", scale), ("site_intercepts", site_intercepts)):
        if not isinstance(value, bool | np.bool_) and not (name == "center" and value is None):
            raise TypeError(f"{name} must be True or False, got {value!r}")
    if not isinstance(data, FederatedData):
        raise TypeError(f"data must be a FederatedData (see its from_ functions), got {type(data).__name__}")
    if center and data.is_sparse:
        raise ValueError("sparse rows are not centred, which would fill them: center=False, or give X dense")
    free = columns_of(unpenalised, data)
    notes: list[str] = []
    if center is None:
        center = not data.is_sparse
        if data.is_sparse:
            notes.append("sparse rows were scaled but not centred.")
    wanted = center or scale or data.has_missing or missing == "mean"  # new rows may miss what these do not
    found = moments(data, engine=engine) if wanted else None
    if found is not None:
        notes += found.notes
        fixed = found.is_constant_within & ~found.is_constant
        if site_intercepts and fixed.any():
            notes.append(
                f"{constant_columns(fixed, data)} constant within every site: the sites' intercepts take up "
                "any effect, and such coefficients are 0."
            )
        if missing == "refuse":
            _refuse(found, data)
    zero = np.zeros(data.row_shape)
    shift = found.mean if found is not None and center else zero
    spread = found.scale if found is not None and scale else zero + 1.0
    fill = found.mean if found is not None and missing == "mean" else None
    if data.has_missing and found is not None:
        notes.append(
            numbered(int(found.missing.sum()), "missing value is", "missing values are")
            + " now the mean of those observed."
        )
    if center or scale or data.has_missing:
        refuse_copy(data.X, "preparing writes every row anew")
        X = transformed(data.X, shift, spread, fill, data.dtype)
        data = replace(data, X=X, has_missing=False, truth=None)
    return Prepared(
        data=data,
        shift=shift,
        scale=spread,
        fill=fill,
        has_site_intercepts=bool(site_intercepts),
        unpenalised=free,
        ledger=Ledger() if found is None else found.ledger,
        notes=tuple(notes),
    )


def columns_of(given: Iterable[int | str], data: FederatedData) -> tuple[int, ...]:
    """Columns by number or by name, as numbers; those of a matrix row count through it."""
    if isinstance(given, str):
        raise TypeError(f"unpenalised must be a list of columns, got the single string {given!r}")
    if not isinstance(given, Iterable):
        raise TypeError(f"unpenalised must be a list of columns, got {given!r}")
    numbers = []
    for each in given:
        if isinstance(each, str):
            if data.feature_names is None:
                raise ValueError(f"there is no column {each!r}: the data has no feature names")
            if each not in data.feature_names:
                raise ValueError(f"there is no column {each!r}{closest(each, data.feature_names)}")
            numbers.append(data.feature_names.index(each))
        elif isinstance(each, int | np.integer) and 0 <= each < data.n_features:
            numbers.append(int(each))
        else:
            raise ValueError(f"there is no column {each!r}: columns are 0 to {data.n_features - 1}")
    return tuple(sorted(set(numbers)))


def _refuse(found: Moments, data: FederatedData) -> None:
    """Name the first client and column with missing values, and how many there are."""
    where = np.argwhere(found.missing)
    if not len(where):
        return
    k, *index = (int(i) for i in where[0])
    count, total = int(found.missing[(k, *index)]), int(found.missing.sum())
    name = column(index, data.feature_names)
    more = f" ({total} in all, in {len(where)} columns of clients)" if total > count else ""
    raise ValueError(
        f"client {data.ids[k]!r}, {name}: {count} missing value{'s' if count > 1 else ''}{more}; "
        "missing='mean' fills them with the mean over all clients"
    )
