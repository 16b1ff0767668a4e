"""The pooled covariance matrix in one round: Σ x xᵀ, Σ x and n_k of each client, summed."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from unpooled._ledger import Ledger
from unpooled.data.federated import FederatedData
from unpooled.exact.base import reasons, refused
from unpooled.exact.clients import Question, QuestionEngine, open_clients
from unpooled.exact.rounds import Server
from unpooled.exact.site import unpacked
from unpooled.exact.sufficient_statistics import FAR, SufficientStatistics
from unpooled.kernels.arrays import Arrays, Float
from unpooled.losses import Squared
from unpooled.penalties import Zero
from unpooled.problem import Problem

OF_THE_TARGET = {"floor", "mean_t", "mean_xt", "mean_yy"}  # zero here, as there is no target


class Covariance(NamedTuple):
    """The covariance ``S`` (p, p), the ``mean`` (p,) and the ledger."""

    S: Float
    mean: Float
    ledger: Ledger


def pooled_covariance(
    data: FederatedData, about_zero: bool, min_rows: int, engine: QuestionEngine | None
) -> Covariance:
    """Σ s (x − x̄)(x − x̄)ᵀ with Σ s = 1; ``about_zero`` takes x̄ = 0.

    A second round with centred rows follows if a mean is so large relative to its spread that digits would be
    lost.
    """
    p = data.n_features
    server = Server(open_clients(engine, replace(data, y=np.zeros_like(data.y))))
    total = _asked(server, data, {"features": np.arange(p)}, min_rows)
    S, mean = unpacked(total["gram"], p), total["mean_x"]
    if about_zero:
        return Covariance(S, np.zeros(p), _of_columns(server.ledger))
    spread = np.diag(S) - mean**2
    if (mean**2 > FAR * spread).any():
        center = np.append(mean, 0.0)
        total = _asked(server, data, {"features": np.arange(p), "center": center}, min_rows)
        rest = total["mean_x"]
        S = unpacked(total["gram"], p) - np.multiply.outer(rest, rest)
        return Covariance(S, mean + rest, _of_columns(server.ledger))
    return Covariance(S - np.multiply.outer(mean, mean), mean, _of_columns(server.ledger))


def _of_columns(ledger: Ledger) -> Ledger:
    """The ledger without the kinds of statistics that are about a target."""
    return replace(ledger, kinds=tuple(kind for kind in ledger.kinds if kind not in OF_THE_TARGET))


def _asked(server: Server, data: FederatedData, question: Arrays, min_rows: int) -> Arrays:
    problem = Problem(Squared(), Zero()).bind(data)
    [total] = server.ask([Question(SufficientStatistics(min_rows), problem, question)])
    why = reasons(refused(total), data.n_clients, min_rows)
    if why:
        raise ValueError(
            f"a covariance matrix needs the Gram matrices of all clients, but {why}: "
            "their rows could be reconstructed. Leave these clients out, or lower min_rows (0: all may send)"
        )
    return dict(total)
