"""Poisson regression for counts, sparse."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.metrics import d2_tweedie_score

from unpooled.data.federated import FederatedData
from unpooled.estimators.base import WithAlpha
from unpooled.estimators.linear import FederatedLinearRegressor
from unpooled.kernels.arrays import Float
from unpooled.losses import Poisson
from unpooled.penalties import ElasticNet


@dataclass(eq=False, repr=False)
class FederatedPoissonRegressor(WithAlpha, FederatedLinearRegressor):
    """minimise  1/N Σ_i (e^{z_i} − y_i z_i) + α(ρ‖w‖₁ + (1 − ρ)/2·‖w‖²),  z_i = x_i·w + b,  ρ = ``l1_ratio``.

    The mean of y is modelled as e^{x·w + b}. scikit-learn's ``PoissonRegressor`` has the squared norm only:
    it is this one with ``l1_ratio=0`` and the same α. With sample weights the first term is
    1/Σs Σ_i s_i (…). The other parameters and the fitted attributes are those of ``FederatedLinearModel``.
    """

    _: KW_ONLY
    l1_ratio: float = 1.0
    unpenalised: Any = ()

    def _loss(self, data: FederatedData) -> Any:
        return Poisson()

    def _penalty(self, lam: float) -> Any:
        return ElasticNet(lam, self.l1_ratio)

    def predict(self, X: Any, clients: Any = None) -> Float:
        """e^{x·w + b}, the expected count of each row; ``clients`` says whose it is, for site intercepts."""
        return np.exp(self._margins(X, clients))

    def score(self, X: Any, y: Any, sample_weight: Any = None, clients: Any = None) -> float:
        """D², the part of the deviance that ``predict(X, clients)`` explains."""
        return float(d2_tweedie_score(y, self.predict(X, clients), sample_weight=sample_weight, power=1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags
