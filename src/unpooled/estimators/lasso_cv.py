"""The lasso with α by cross-validation."""

from __future__ import annotations

from typing import Any

from unpooled.estimators.cross_validated import CrossValidated
from unpooled.estimators.lasso import FederatedLasso


class FederatedLassoCV(CrossValidated, FederatedLasso):
    """minimise  1/(2N) Σ_i (y_i − x_i·w − b)² + α‖w‖₁,  α by cross-validation over the rows of all clients.

    As ``sklearn.linear_model.LassoCV`` on the pooled rows with the same folds. One round for all folds and
    all α where clients may send Gram matrices (of each fold: ``min_rows`` holds for a client's fold). The
    held-out losses are ``mse_path_`` (α, fold). For the parameters see ``CrossValidated`` and
    ``FederatedLinearModel``.
    """

    def __init__(
        self,
        *,
        n_alphas: int = 100,
        eps: float = 1e-3,
        alphas: Any = None,
        cv: Any = 5,
        rule: str = "min",
        seed: int = 0,
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
        self.n_alphas = n_alphas
        self.eps = eps
        self.alphas = alphas
        self.cv = cv
        self.rule = rule
        self.seed = seed
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
