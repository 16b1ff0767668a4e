"""A site's rows as the agreement has them: X (n, p) with a column for each dummy, y, and X scaled."""

from __future__ import annotations

import numpy as np

from unpooled._wording import numbered
from unpooled.data.federated import FederatedData
from unpooled.kernels.arrays import Float
from unpooled.preprocessing.transform import transformed
from unpooled.study.agreement import Agreement
from unpooled.study.config import Study, StudyError
from unpooled.study.rare import without_rare_levels
from unpooled.study.table import Table


def encoded(study: Study, site: str, agreement: Agreement, table: Table) -> tuple[Float, Float]:
    """X, with NaN for missing numbers, and y: numbers, or the number of each row's class.

    Rare levels of the site are merged.
    """
    of = {each.name: each for each in agreement.categories}
    parts = []
    for name in agreement.features:
        if name in of:
            labels, _ = without_rare_levels(study, site, name, table.labels(name))
            parts.append(of[name].one_hot(np.array(labels, dtype=object), str(table.path), "other"))
        else:
            parts.append(table.numbers(name)[:, None])
    return np.concatenate(parts, axis=1), _target(study, agreement, table)


def federated(
    site: str, X: Float, y: Float, names: tuple[str, ...], prepared: tuple[Float, Float, Float | None] | None
) -> FederatedData:
    """The rows of one client; ``prepared`` has the shift, the scale and what stands for missing values."""
    if prepared is not None:
        X = transformed(X, *prepared, np.dtype(np.float64))
    gone = bool(np.isnan(X).any())
    return FederatedData.from_clients({site: (X, y)}, feature_names=names, allow_missing=gone)


def _target(study: Study, agreement: Agreement, table: Table) -> Float:
    if not agreement.classes:
        return table.numbers(study.target)
    code = {label: c for c, label in enumerate(agreement.classes)}
    labels = table.labels(study.target)
    unknown = {label for label in labels if label not in code}
    if unknown:
        found = numbered(len(unknown), "class that was", "classes that were")
        raise StudyError(f"the target {study.target!r} has {found} not agreed on")
    return np.array([float(code[label]) for label in labels])
