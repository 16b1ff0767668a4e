"""Huber regression, sparse, for targets with outliers."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from unpooled.data.federated import FederatedData
from unpooled.estimators.base import WithAlpha
from unpooled.estimators.linear import FederatedLinearRegressor
from unpooled.losses import Huber
from unpooled.penalties import ElasticNet


@dataclass(eq=False, repr=False)
class FederatedHuberRegressor(WithAlpha, FederatedLinearRegressor):
    """minimise  1/N Σ_i H_δ(y_i − x_i·w − b) + α(ρ‖w‖₁ + (1 − ρ)/2·‖w‖²),  ρ = ``l1_ratio``,

    H_δ(r) = r²/2 where |r| ≤ δ and δ|r| − δ²/2 beyond. δ = ``delta`` is in the units of y and fixed:
    scikit-learn's ``HuberRegressor`` estimates a scale along with w and has the squared norm only, so that
    its ``epsilon`` and ``alpha`` mean something else. With sample weights the first term is 1/Σs Σ_i s_i (…).
    The other parameters and the fitted attributes are those of ``FederatedLinearModel``.
    """

    _: KW_ONLY
    delta: float = 1.35
    l1_ratio: float = 1.0
    unpenalised: Any = ()

    def _loss(self, data: FederatedData) -> Any:
        return Huber(self.delta)

    def _penalty(self, lam: float) -> Any:
        return ElasticNet(lam, self.l1_ratio)
