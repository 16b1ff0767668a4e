"""The loss of a model at the nodes: the questions, and what the answers come to."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import numpy as np

from unpooled.engines.remote.data import RemoteData
from unpooled.engines.remote.messages import Failure, Holder, Reply, Request
from unpooled.engines.remote.specs import encode
from unpooled.kernels.arrays import Array
from unpooled.problem import Problem

log = logging.getLogger("unpooled.flower")


def questions(
    data: RemoteData, problem: Problem, w: Any, intercept: Any, chosen: Array
) -> dict[Holder, Request]:
    """Ask the holders of the clients ``chosen`` for the loss of their rows."""
    spec, sent = encode(problem, name="problem")
    sent["w"] = np.asarray(w)
    if intercept is not None:
        sent["intercept"] = np.asarray(intercept, dtype=np.float64)
    return {
        holder: data.request(holder, "value", {"problem": spec}, sent)
        for holder, own in data.holders.items()
        if np.isin(own, chosen).any()
    }


def mean_loss(data: RemoteData, answers: Mapping[Holder, Reply | Failure]) -> float | None:
    """Σ π_k L_k / Σ π_k over those who answered; None where nobody did."""
    total, weight = 0.0, 0.0
    for holder, told in sorted(answers.items()):
        if isinstance(told, Failure):
            log.warning("site %r did not tell its loss: %s", holder, told.reason)
            continue
        own = data.weights[data.holders[holder]]
        total += float(np.dot(own, told.arrays["value"]))
        weight += float(own.sum())
    return total / weight if weight else None
