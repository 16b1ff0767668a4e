"""The group lasso."""

from __future__ import annotations

from typing import Any

import numpy as np

from unpooled.data import FederatedData
from unpooled.estimators.linear import FederatedLinearRegressor
from unpooled.losses import Squared
from unpooled.penalties import GroupL2


class FederatedGroupLasso(FederatedLinearRegressor):
    """minimise  1/(2N) Σ_i (y_i − x_i·w − b)² + α Σ_g ω_g ‖w_g‖₂.

    ``groups`` is one label per feature (integers or strings), or a list of lists of feature numbers; None
    makes each feature a group of its own, which is the lasso. ``group_weights`` are the ω_g: "sqrt" (√ of the
    group's size), None (all one), or one positive number per group. With sample weights the first term is
    1/(2Σs) Σ_i s_i (…)². One round where clients may send Gram matrices. The other parameters and the fitted
    attributes are those of ``FederatedLinearModel``.
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        groups: Any = None,
        group_weights: Any = "sqrt",
        fit_intercept: bool = True,
        standardise: bool = False,
        missing: str = "refuse",
        site_intercepts: bool = False,
        solver: Any = "auto",
        tol: float = 1e-8,
        max_rounds: int = 500,
        min_rows: int = 10,
        second_order: bool = True,
        engine: Any = None,
    ):
        self.alpha = alpha
        self.groups = groups
        self.group_weights = group_weights
        self.fit_intercept = fit_intercept
        self.standardise = standardise
        self.missing = missing
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
        groups = np.arange(self.n_features_in_) if self.groups is None else self.groups
        return GroupL2(lam, groups, self.group_weights)
