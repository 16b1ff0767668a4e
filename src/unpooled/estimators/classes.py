"""Agree on the classes, and their total weights, before fitting a classifier.

In one round each client sends its labels and the total weight of each, and receives the union. A client may
have rows of a single class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unpooled._ledger import Ledger
from unpooled._validation import listing, sort_rows
from unpooled.estimators.fit_inputs import CheckedRows
from unpooled.kernels.arrays import Array, Float


@dataclass(frozen=True, eq=False)
class ClassAgreement:
    """The sorted ``classes``, each row's class number, each class's weight Σ s, and the ledger."""

    classes: Array
    codes: Array
    totals: Float
    ledger: Ledger


def agree(rows: CheckedRows) -> ClassAgreement:
    """The union of the clients' classes."""
    classes, codes = np.unique(np.asarray(rows.y), return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"a classifier needs at least two classes, but all labels of all clients are of one class: "
            f"{classes.tolist()[0]!r}"
        )
    totals = np.bincount(codes, rows.sample_weight, len(classes)).astype(np.float64)
    sites = sort_rows(rows.clients)
    K, C = len(sites.ids), len(classes)
    of = np.repeat(np.arange(K), np.diff(sites.offsets))
    held = len(np.unique(of * C + codes[... if sites.order is None else sites.order]))
    kinds = ("class labels", "class weights")
    ledger = Ledger().after_answers(K, 2 * held, 2 * C * K, kinds)  # held: pairs of a client and a class
    return ClassAgreement(classes, codes, totals, replace(ledger, setup_rounds=1))


def class_factors(class_weight: Any, agreed: ClassAgreement) -> Float | None:
    """The factor of each class: None for none, "balanced" Σs / (C Σ_c s), or by label (1 where not named)."""
    if class_weight is None:
        return None
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ValueError(f"class_weight must be None, 'balanced' or a dictionary, got {class_weight!r}")
        return np.asarray(agreed.totals.sum() / (len(agreed.totals) * agreed.totals))
    if not isinstance(class_weight, Mapping):
        raise ValueError(f"class_weight must be None, 'balanced' or a dictionary, got {class_weight!r}")
    known = {label: c for c, label in enumerate(agreed.classes.tolist())}
    factors = np.ones(len(known))
    for label, factor in class_weight.items():
        if label not in known:
            raise ValueError(
                f"class_weight names {label!r}, which is not a class: there are {listing(known)}"
            )
        if not 0.0 < factor < np.inf:
            raise ValueError(f"class_weight of {label!r} must be a positive number, got {factor!r}")
        factors[known[label]] = factor
    return factors
