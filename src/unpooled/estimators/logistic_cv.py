"""Sparse logistic regression with C by cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np

from unpooled.arrays import Array, Float
from unpooled.cross_validation import CrossValidation
from unpooled.data import FederatedData
from unpooled.estimators.cross_validated import CrossValidated, with_ledger
from unpooled.estimators.logistic import FederatedLogisticRegression
from unpooled.estimators.traffic import together
from unpooled.fit import Fit
from unpooled.problem import Problem


class FederatedLogisticRegressionCV(CrossValidated, FederatedLogisticRegression):
    """``FederatedLogisticRegression`` with C by the held-out log loss.

    The path is one of α = 1/(CΣs), the penalty beside the mean loss, so that it means the same for folds of
    any size: minimise (1/Σs) Σ_i s_i ℓ_i + α(ρ‖w‖₁ + (1 − ρ)/2·‖w‖²). ``alpha_`` is the chosen one, ``C_``
    that of all rows; ``Cs``, where given, takes the place of the path. The held-out losses are
    ``log_loss_path_`` (α, fold), of α from the largest down (``alphas_``, ``Cs_``). With ``class_weight``
    rows weigh in them as they do in the fit. For the other parameters see ``CrossValidated``,
    ``FederatedLogisticRegression`` and ``FederatedLinearModel``.
    """

    def __init__(
        self,
        *,
        Cs: Any = None,
        l1_ratio: float = 1.0,
        class_weight: Any = None,
        n_alphas: int = 100,
        eps: float = 1e-3,
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
        self.Cs = Cs
        self.l1_ratio = l1_ratio
        self.class_weight = class_weight
        self.n_alphas = n_alphas
        self.eps = eps
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

    def _lambdas(self, data: FederatedData) -> Float | None:
        if self.Cs is None:
            if self.l1_ratio == 0.0:
                raise ValueError("l1_ratio=0 makes no coefficient zero, so no C is the smallest: give Cs")
            return None
        Cs = np.asarray(self.Cs, dtype=np.float64)
        if Cs.ndim != 1 or not Cs.size or not (np.isfinite(Cs) & (Cs > 0.0)).all():
            raise ValueError(f"Cs must be positive numbers, got {self.Cs!r}")
        return np.asarray(1.0 / (Cs * self._total))

    def _solve(self, problem: Problem, data: FederatedData, number: Array) -> Fit:
        result = self._cross_validate(problem, data, self._folds(data, number))
        fit = self._keep_cross_validation(problem, result)
        self.C_, self.Cs_ = 1.0 / (self.alpha_ * self._total), 1.0 / (self.alphas_ * self._total)
        return with_ledger(fit, together(self._agreement, fit.ledger))

    def _keep_losses(self, result: CrossValidation) -> None:
        self.log_loss_path_ = result.losses
