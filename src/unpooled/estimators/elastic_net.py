"""The elastic net."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unpooled.data.federated import FederatedData
from unpooled.estimators.base import WithAlpha
from unpooled.estimators.linear import FederatedLinearRegressor
from unpooled.losses import Squared
from unpooled.penalties import ElasticNet


@dataclass(eq=False, repr=False, kw_only=True)
class ElasticNetModel(FederatedLinearRegressor):
    """Least squares and the elastic net, whatever chooses α."""

    l1_ratio: Any = 0.5
    unpenalised: Any = ()

    def _loss(self, data: FederatedData) -> Any:
        return Squared()

    def _penalty(self, lam: float) -> Any:
        return ElasticNet(lam, self.l1_ratio)


@dataclass(eq=False, repr=False)
class FederatedElasticNet(WithAlpha, ElasticNetModel):
    """minimise  1/(2N) Σ_i (y_i − x_i·w − b)² + α(ρ‖w‖₁ + (1 − ρ)/2·‖w‖²),  ρ = ``l1_ratio``.

    The objective and its scaling are those of ``sklearn.linear_model.ElasticNet``; with sample weights the
    first term is 1/(2Σs) Σ_i s_i (…)². One round where clients may send Gram matrices. The other parameters
    and the fitted attributes are those of ``FederatedLinearModel``.
    """
