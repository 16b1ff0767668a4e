"""The elastic net."""

from __future__ import annotations

from typing import Any

from unpooled.data import FederatedData
from unpooled.estimators.linear import FederatedLinearRegressor
from unpooled.losses import Squared
from unpooled.penalties import ElasticNet


class FederatedElasticNet(FederatedLinearRegressor):
    """minimise  1/(2N) Σ_i (y_i − x_i·w − b)² + α(ρ‖w‖₁ + (1 − ρ)/2·‖w‖²),  ρ = ``l1_ratio``.

    The objective and its scaling are those of ``sklearn.linear_model.ElasticNet``; with sample weights the
    first term is 1/(2Σs) Σ_i s_i (…)². One round where clients may send Gram matrices. The other parameters
    and the fitted attributes are those of ``FederatedLinearModel``.
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        standardise: bool = False,
        missing: str = "refuse",
        unpenalised: Any = (),
        site_intercepts: bool = False,
        solver: Any = "auto",
        tol: float = 1e-8,
        max_rounds: int = 500,
        min_rows: int = 10,
        second_order: bool = True,
        engine: Any = None,
    ):
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.standardise = standardise
        self.missing = missing
        self.unpenalised = unpenalised
        self.site_intercepts = site_intercepts
        self.solver = solver
        self.tol = tol
        self.max_rounds = max_rounds
        self.min_rows = min_rows
        self.second_order = second_order
        self.engine = engine

    def _loss(self, data: FederatedData) -> Any:
        return Squared()

    def _penalty(self, lam: float) -> Any:
        return ElasticNet(lam, self.l1_ratio)
