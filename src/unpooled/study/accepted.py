"""Whether a site accepts what it is told was agreed: columns, levels and classes, and how rows are scaled."""

from __future__ import annotations

import numpy as np

from unpooled.kernels.arrays import Float
from unpooled.preprocessing.levels import OTHER, Categories
from unpooled.study.agreement import Agreement
from unpooled.study.allowed import NotAllowedError, is_finite
from unpooled.study.config import Study
from unpooled.study.description import concerned, rarities
from unpooled.study.envelope import Scaling
from unpooled.study.rare import rare_columns, without_rare_levels
from unpooled.study.table import Table


def check_agreement(study: Study, site: str, table: Table, agreement: Agreement) -> None:
    """Columns and levels must be the study's, without those in which few rows of this site stand out.

    Its table fits the study (``description.unfits``): no class of the target is rare.
    """
    known = concerned(study, table)[1:]
    rare = rarities(study, site, table).columns
    of = {each.name: each for each in agreement.categories}
    for name in agreement.features:
        if name not in known:
            raise NotAllowedError(f"column {name!r}, which is not in data.features", _only(study, "features"))
        if name in rare:
            raise NotAllowedError(
                f"column {name!r}",
                f"fewer rows of this site stand out in it than limits.minimum_rows = {study.minimum_rows}",
            )
    if len(set(agreement.features)) < len(agreement.features):
        raise NotAllowedError("a column twice", _only(study, "features"))
    for name in of:
        if name not in study.categorical or name not in agreement.features:
            raise NotAllowedError(
                f"levels of {name!r}, which is not in data.categorical", _only(study, "categorical")
            )
    for name in study.categorical:
        if name in agreement.features:
            _check_levels(study, site, table, name, of.get(name))
    _check_classes(study, table, agreement)


def _check_levels(study: Study, site: str, table: Table, name: str, levels: Categories | None) -> None:
    given = study.categorical[name]
    if levels is None:
        raise NotAllowedError(f"{name!r} as a number", f"data.categorical has {name!r}")
    if not isinstance(given, str):
        if levels != Categories(name, tuple(given), given[0], False):
            raise NotAllowedError(f"other levels of {name!r}", f"data.categorical names {len(given)} of them")
        return
    own, _ = without_rare_levels(study, site, name, table.labels(name))
    is_plain = all(isinstance(level, str | int) for level in levels.levels)
    if not is_plain or not levels.levels or levels.reference != levels.levels[0]:
        raise NotAllowedError(f"levels of {name!r} without a reference", "a study's first level is that")
    if not set(own) <= {*levels.levels, *([OTHER] if levels.has_other else [])}:
        raise NotAllowedError(
            f"rows that leave out levels of {name!r}", "this site has named them, as data.categorical says"
        )


def _check_classes(study: Study, table: Table, agreement: Agreement) -> None:
    classes = agreement.classes
    if not study.is_classifier:
        if classes:
            raise NotAllowedError("classes", f"model.kind = {study.model!r} has none")
        return
    own = set(table.labels(study.target))
    is_right = len(classes) == 2 if study.model == "logistic" else len(classes) > 2
    if not is_right or len(set(classes)) < len(classes) or not own <= set(classes):
        raise NotAllowedError("other classes of the target", f"model.kind = {study.model!r}")


def check_scaling(study: Study, site: str, X: Float, scaling: Scaling | None) -> None:
    """One that the study makes; filled in values must not make the few rows stand out that lack theirs."""
    if scaling is None:
        return
    fills = study.missing == "mean"
    if not study.standardise and not fills:
        raise NotAllowedError("scaled rows", f"model.standardise = {study.standardise}")
    if (scaling.fill is not None) != fills:
        raise NotAllowedError("values filled in", f"data.missing = {study.missing!r}")
    arrays = [scaling.shift, scaling.scale, *([] if scaling.fill is None else [scaling.fill])]
    if any(a.shape != X.shape[1:] or not is_finite(a) for a in arrays) or (scaling.scale <= 0.0).any():
        raise NotAllowedError(
            "rows scaled by arrays of the wrong shape, with NaN or with scales that are not positive",
            f"a shift, a scale and a fill have {X.shape[1:]} finite numbers: are the versions the same?",
        )
    gone = np.isnan(X)
    some = np.flatnonzero(gone.any(axis=0))
    if scaling.fill is not None and some.size:
        filled = np.where(gone, scaling.fill, X)[:, some]
        if rare_columns(study, site, filled).any():
            raise NotAllowedError(
                "a value in place of missing ones that makes rows stand out",
                f"these are fewer than limits.minimum_rows = {study.minimum_rows}",
            )


def check_center(study: Study, center: float | None) -> None:
    """What targets lose before a fit."""
    if center is not None and not (study.is_centred and np.isfinite(center)):
        raise NotAllowedError(
            f"targets less {center!r}", f"model.kind = {study.model!r} takes them as they are"
        )


def _only(study: Study, key: str) -> str:
    return f"data.{key} of this site's study.toml is all that it answers about"
