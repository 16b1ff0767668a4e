"""Huber regression, sparse, for targets with outliers."""

from __future__ import annotations

from typing import Any

from unpooled.data import FederatedData
from unpooled.estimators.linear import FederatedLinearRegressor
from unpooled.losses import Huber
from unpooled.penalties import ElasticNet


class FederatedHuberRegressor(FederatedLinearRegressor):
    """minimise  1/N Σ_i H_δ(y_i − x_i·w − b) + α(ρ‖w‖₁ + (1 − ρ)/2·‖w‖²),  ρ = ``l1_ratio``,

    H_δ(r) = r²/2 where |r| ≤ δ and δ|r| − δ²/2 beyond. δ = ``delta`` is in the units of y and fixed:
    scikit-learn's ``HuberRegressor`` estimates a scale along with w and has the squared norm only, so that
    its ``epsilon`` and ``alpha`` mean something else. With sample weights the first term is 1/Σs Σ_i s_i (…).
    The other parameters and the fitted attributes are those of ``FederatedLinearModel``.
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        delta: float = 1.35,
        l1_ratio: float = 1.0,
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
        self.delta = delta
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
        return Huber(self.delta)

    def _penalty(self, lam: float) -> Any:
        return ElasticNet(lam, self.l1_ratio)
