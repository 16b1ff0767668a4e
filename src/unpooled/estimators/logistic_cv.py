"""Sparse logistic regression with C by cross-validation."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np

from unpooled.data.federated import FederatedData
from unpooled.estimators.cross_validated import CrossValidated
from unpooled.estimators.logistic import LogisticModel
from unpooled.exact.cross_validation import CrossValidation
from unpooled.exact.fit import Fit
from unpooled.kernels.arrays import Float
from unpooled.problem import Problem


@dataclass(eq=False, repr=False)
class FederatedLogisticRegressionCV(CrossValidated, LogisticModel):
    """``FederatedLogisticRegression`` with C by the held-out log loss.

    The path is one of α = 1/(CΣs), the penalty beside the mean loss, so that it means the same for folds of
    any size: minimise (1/Σs) Σ_i s_i ℓ_i + α(ρ‖w‖₁ + (1 − ρ)/2·‖w‖²). ``alpha_`` is the chosen one, ``C_``
    that of all rows; ``Cs``, where given, takes the place of the path. The held-out losses are
    ``log_loss_path_`` (α, fold), of α from the largest down (``alphas_``, ``Cs_``). With ``class_weight``
    rows weigh in them as they do in the fit. For the other parameters see ``CrossValidated``,
    ``FederatedLogisticRegression`` and ``FederatedLinearModel``.
    """

    _: KW_ONLY
    Cs: Any = None

    def _lambdas(self, data: FederatedData) -> Float | None:
        if self.Cs is None:
            if self.l1_ratio == 0.0:
                raise ValueError("l1_ratio=0 makes no coefficient zero, so no C is the smallest: give Cs")
            return None
        Cs = np.asarray(self.Cs, dtype=np.float64)
        if Cs.ndim != 1 or not Cs.size or not (np.isfinite(Cs) & (Cs > 0.0)).all():
            raise ValueError(f"Cs must be positive numbers, got {self.Cs!r}")
        return np.asarray(1.0 / (Cs * self._total))

    def _solve(self, problem: Problem, data: FederatedData, folds: Any) -> Fit:
        result = self._cross_validate(problem, data, folds)
        fit = self._keep_cross_validation(problem, result)
        self.C_, self.Cs_ = 1.0 / (self.alpha_ * self._total), 1.0 / (self.alphas_ * self._total)
        return replace(fit, ledger=self._agreement + fit.ledger)

    def _keep_losses(self, result: CrossValidation) -> None:
        self.log_loss_path_ = result.losses

    def _held_out(self, mean: float, se: float) -> str:
        return f"mean held-out log loss {mean:.6g} ± {se:.2g} (log_loss_path_ over all rows)"
