"""The problem that a study states: its loss and its penalty; no rows are needed for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from unpooled._validation import closest
from unpooled.losses import Huber, Logistic, Poisson, Softmax, Squared
from unpooled.penalties import L1, ElasticNet, GroupL2
from unpooled.problem import Problem
from unpooled.study.agreement import Agreement
from unpooled.study.config import Study, StudyError


def stated(study: Study, agreement: Agreement) -> Problem:
    """The problem, at the study's λ or, where that is to be chosen, at 1."""
    lam = 1.0 if isinstance(study.lam, str) else study.lam
    return Problem(_loss(study, agreement), _penalty(study, agreement, lam), study.intercept)


def _loss(study: Study, agreement: Agreement) -> Any:
    if study.model == "logistic":
        return Logistic()
    if study.model == "multinomial":
        return Softmax(n_classes=len(agreement.classes))
    if study.model == "poisson":
        return Poisson()
    return Huber(study.delta) if study.model == "huber" else Squared()


def _penalty(study: Study, agreement: Agreement, lam: float) -> Any:
    known = {*agreement.features, *(study.features if study.features != "all" else ())}
    grouped = [column for columns in study.groups.values() for column in columns]
    for path, names in (("model.unpenalised", study.unpenalised), ("model.groups", grouped)):
        for name in names:
            if name not in known:
                raise StudyError(f"{path} names {name!r}, which no site has{closest(name, known)}")
    if study.model == "group lasso":
        group = {column: f"group {name}" for name, columns in study.groups.items() for column in columns}
        labels = [group.get(column, f"column {column}") for column in agreement.columns]
        return GroupL2(lam, labels, "sqrt")
    penalty = L1(lam) if study.model == "lasso" else ElasticNet(lam, study.l1_ratio)
    if not study.unpenalised:
        return penalty
    free = np.array([column in study.unpenalised for column in agreement.columns])
    return replace(penalty, weights=np.where(free, 0.0, 1.0))
