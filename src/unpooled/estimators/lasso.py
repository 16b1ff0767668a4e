"""The lasso, with α given or chosen by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unpooled.data.federated import FederatedData
from unpooled.estimators.base import WithAlpha
from unpooled.estimators.cross_validated import ChoosesAlpha
from unpooled.estimators.linear import FederatedLinearRegressor
from unpooled.losses import Squared
from unpooled.penalties import L1


@dataclass(eq=False, repr=False, kw_only=True)
class LassoModel(FederatedLinearRegressor):
    """Least squares and the ℓ1 norm, whatever chooses α."""

    unpenalised: Any = ()

    def _loss(self, data: FederatedData) -> Any:
        return Squared()

    def _penalty(self, lam: float) -> Any:
        return L1(lam)


@dataclass(eq=False, repr=False)
class FederatedLasso(WithAlpha, LassoModel):
    """minimise  1/(2N) Σ_i (y_i − x_i·w − b)² + α‖w‖₁  over the N rows of all clients.

    The objective and its scaling are those of ``sklearn.linear_model.Lasso``; with sample weights the first
    term is 1/(2Σs) Σ_i s_i (…)². One round where clients may send Gram matrices. The other parameters and
    the fitted attributes are those of ``FederatedLinearModel``.
    """


@dataclass(eq=False, repr=False)
class FederatedLassoCV(ChoosesAlpha, LassoModel):
    """minimise  1/(2N) Σ_i (y_i − x_i·w − b)² + α‖w‖₁,  α by cross-validation over the rows of all clients.

    As ``sklearn.linear_model.LassoCV`` on the pooled rows with the same folds. One round for all folds and
    all α where clients may send Gram matrices (of each fold: ``min_rows`` holds for a client's fold). The
    mean squared errors of held-out rows are ``mse_path_`` (α, fold), twice the loss above. For the parameters
    see ``CrossValidated`` and ``FederatedLinearModel``.
    """
