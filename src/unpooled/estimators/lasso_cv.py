"""The lasso with α by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass

from unpooled.estimators.cross_validated import ChoosesAlpha
from unpooled.estimators.lasso import LassoModel


@dataclass(eq=False, repr=False)
class FederatedLassoCV(ChoosesAlpha, LassoModel):
    """minimise  1/(2N) Σ_i (y_i − x_i·w − b)² + α‖w‖₁,  α by cross-validation over the rows of all clients.

    As ``sklearn.linear_model.LassoCV`` on the pooled rows with the same folds. One round for all folds and
    all α where clients may send Gram matrices (of each fold: ``min_rows`` holds for a client's fold). The
    mean squared errors of held-out rows are ``mse_path_`` (α, fold), twice the loss above. For the parameters
    see ``CrossValidated`` and ``FederatedLinearModel``.
    """
