"""``encode``: frames with categories as federated data, the same columns in the same order at every site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unpooled._validation import float_dtype, listing
from unpooled.data.federated import FederatedData
from unpooled.kernels.arrays import Float
from unpooled.preprocessing.levels import OTHER, Categories, Levels, agree_levels
from unpooled.preprocessing.site_frames import SiteFrames


@dataclass(frozen=True, eq=False, repr=False)
class Encoded:
    """``data``, and ``apply`` for new frames: ``features`` in order, categories by their agreed levels."""

    data: FederatedData
    features: tuple[Any, ...]
    levels: Levels

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The columns of X."""
        assert self.data.feature_names is not None
        return self.data.feature_names

    @property
    def groups(self) -> tuple[str, ...]:
        """The feature that each column of X comes from: the dummies of a category share it.

        For ``GroupL2(lam, groups)`` and ``FederatedGroupLasso(groups=…)``: a category is selected as a whole.
        """
        of = {each.name: each.feature_names for each in self.levels.columns}
        return tuple(str(n) for n in self.features for _ in of.get(str(n), (n,)))

    def apply(self, frame: Any, *, unknown: str = "error") -> Float:
        """X of a new frame; with ``unknown`` "other" a level that was not agreed counts as "other"."""
        if unknown not in ("error", OTHER):
            raise ValueError(f"unknown must be 'error' or 'other', got {unknown!r}")
        for name in self.features:
            if name not in list(frame.columns):
                raise ValueError(f"the frame has no column {name!r}; it has {listing(frame.columns)}")
        of = {each.name: each for each in self.levels.columns}
        parts = [_part(of.get(str(n)), n, frame[n].to_numpy(), "the frame", unknown) for n in self.features]
        return np.concatenate(parts, axis=1)

    def __repr__(self) -> str:
        return f"Encoded({self.data!r}, {len(self.levels.columns)} categorical columns)"


def encode(
    frames: Any,
    target: Any,
    *,
    client: Any = None,
    categorical: Sequence[Any] | None = None,
    levels: Levels | None = None,
    sample_weight: Any = None,
    weights: Any = "samples",
    min_rows: int = 10,
    rare: str = "other",
    reference: Mapping[Any, Any] | bool = True,
    missing: str = "error",
    allow_missing: bool = False,
) -> Encoded:
    """Categorical columns as 0/1 columns, one for each level that the sites agree on, in one round or two.

    ``frames``, ``client``, ``min_rows``, ``rare``, ``reference`` and ``missing`` (of categories) are those of
    ``agree_levels``, whose result may be given as ``levels``. ``categorical`` names the columns; None: those
    that are not numbers. ``target`` and ``sample_weight`` name columns; the others are features, in the order
    of the frame. ``allow_missing`` accepts NaN in the numeric ones, for ``prepare``.
    """
    sites = SiteFrames.of(frames, client)
    special = [target] + ([] if sample_weight is None else [sample_weight])
    for name in special:
        if name not in sites.names:
            raise ValueError(f"the frame has no column {name!r}; it has {listing(sites.names)}")
    features = [name for name in sites.names if name not in special]
    if not features:
        raise ValueError(f"the frame has no features besides {listing(special)}")
    if levels is not None:
        known = {each.name for each in levels.columns}
        categorical = [name for name in features if str(name) in known]
    elif categorical is None:
        categorical = [name for name in features if not _is_numeric(sites, name)]
    if levels is None:
        options: dict[str, Any] = {"min_rows": min_rows, "rare": rare, "reference": reference}
        options["missing"] = missing
        levels = agree_levels(sites, list(categorical), **options)
    of = {each.name: each for each in levels.columns}
    clients: dict[Any, list[Any]] = {site: [] for site in sites.ids}
    names: list[str] = []
    for name in features:
        own = of.get(str(name)) if name in categorical else None
        names += own.feature_names if own else (str(name),)
        for site, values in sites.column(name):
            # a level that its site did not name, and no other site did, is "other"
            clients[site].append(_part(own, name, values, f"client {site!r}", OTHER))
    columns = [dict(sites.column(name)) for name in special]
    given = {
        site: (np.concatenate(parts, axis=1), *(column[site] for column in columns))
        for site, parts in clients.items()
    }
    data = FederatedData.from_clients(
        given, weights=weights, feature_names=names, allow_missing=allow_missing
    )
    return Encoded(data, tuple(features), levels)


def _part(own: Categories | None, name: Any, values: Any, where: str, unknown: str) -> Float:
    """A feature's columns of X."""
    if own is not None:
        return own.one_hot(values, where, unknown)
    dtype = float_dtype(values.dtype)
    if dtype is None:
        raise TypeError(f"{where}: column {name!r} is not numeric ({values.dtype}); name it as categorical")
    return np.asarray(values, dtype=np.float64)[:, None]


def _is_numeric(sites: SiteFrames, name: Any) -> bool:
    return all(float_dtype(np.asarray(frame[name].to_numpy()).dtype) is not None for frame in sites.frames)
