"""The group lasso with α by cross-validation."""

from __future__ import annotations

from typing import Any

from unpooled.estimators.cross_validated import CrossValidated
from unpooled.estimators.group_lasso import FederatedGroupLasso


class FederatedGroupLassoCV(CrossValidated, FederatedGroupLasso):
    """minimise  1/(2N) Σ_i (y_i − x_i·w − b)² + α Σ_g ω_g ‖w_g‖₂,  α by cross-validation.

    ``groups`` and ``group_weights`` are those of ``FederatedGroupLasso``. The held-out losses are
    ``mse_path_`` (α, fold). For the other parameters see ``CrossValidated`` and ``FederatedLinearModel``.
    """

    def __init__(
        self,
        *,
        groups: Any = None,
        group_weights: Any = "sqrt",
        n_alphas: int = 100,
        eps: float = 1e-3,
        alphas: Any = None,
        cv: Any = 5,
        rule: str = "min",
        seed: int = 0,
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
        self.groups = groups
        self.group_weights = group_weights
        self.n_alphas = n_alphas
        self.eps = eps
        self.alphas = alphas
        self.cv = cv
        self.rule = rule
        self.seed = seed
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
