"""The group lasso with α by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass

from unpooled.estimators.cross_validated import ChoosesAlpha
from unpooled.estimators.group_lasso import GroupLassoModel


@dataclass(eq=False, repr=False)
class FederatedGroupLassoCV(ChoosesAlpha, GroupLassoModel):
    """minimise  1/(2N) Σ_i (y_i − x_i·w − b)² + α Σ_g ω_g ‖w_g‖₂,  α by cross-validation.

    ``groups`` and ``group_weights`` are those of ``FederatedGroupLasso``. The mean squared errors
    of held-out rows are ``mse_path_`` (α, fold), twice the loss above. For the other parameters see
    ``CrossValidated`` and ``FederatedLinearModel``.
    """
