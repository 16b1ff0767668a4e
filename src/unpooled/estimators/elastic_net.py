"""The elastic net, with α given or chosen by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unpooled._ledger import Ledger
from unpooled.data.federated import FederatedData
from unpooled.estimators.base import WithAlpha
from unpooled.estimators.cross_validated import ChoosesAlpha
from unpooled.estimators.linear import FederatedLinearRegressor
from unpooled.exact.fit import Fit
from unpooled.losses import Squared
from unpooled.penalties import ElasticNet
from unpooled.problem import Problem


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


@dataclass(eq=False, repr=False)
class FederatedElasticNetCV(ChoosesAlpha, ElasticNetModel):
    """minimise  1/(2N) Σ_i (y_i − x_i·w − b)² + α(ρ‖w‖₁ + (1 − ρ)/2·‖w‖²),  α by cross-validation.

    ``l1_ratio`` is ρ, or several of them: then the one of least mean held-out loss is ``l1_ratio_``, each has
    its own α and its own rounds. ``mse_path_`` (α, fold) and ``alphas_`` are those of ``l1_ratio_``; the
    first holds the mean squared errors of held-out rows, which are twice the loss above. As
    ``sklearn.linear_model.ElasticNetCV`` on the pooled rows with the same folds. For the other parameters see
    ``CrossValidated`` and ``FederatedLinearModel``.
    """

    def _problem(self, data: FederatedData) -> Problem:
        return self._problem_at(self._ratios()[0])

    def _problem_at(self, ratio: float) -> Problem:
        return self._stated(Squared(), ElasticNet(1.0, ratio))

    def _ratios(self) -> list[float]:
        ratios = np.atleast_1d(np.asarray(self.l1_ratio, dtype=np.float64)).ravel().tolist()
        if not ratios:
            raise ValueError("l1_ratio is empty: give one number between 0 and 1, or several")
        if self.alphas is None and min(ratios) == 0.0:
            raise ValueError("l1_ratio=0 makes no coefficient zero, so no alpha is the largest: give alphas")
        return ratios

    def _solve(self, problem: Problem, data: FederatedData, folds: Any) -> Fit:
        ratios = self._ratios()
        results = [self._cross_validate(self._problem_at(ratio), data, folds) for ratio in ratios]
        best = int(np.argmin([result.mean.min() for result in results]))
        self.l1_ratio_ = ratios[best]
        fit = self._keep_cross_validation(problem, results[best])
        return replace(fit, ledger=sum((result.ledger for result in results), Ledger()))
