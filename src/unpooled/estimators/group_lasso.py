"""The group lasso, with α given or chosen by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unpooled.data.federated import FederatedData
from unpooled.estimators.base import WithAlpha
from unpooled.estimators.cross_validated import ChoosesAlpha
from unpooled.estimators.linear import FederatedLinearRegressor
from unpooled.losses import Squared
from unpooled.penalties import GroupL2


@dataclass(eq=False, repr=False, kw_only=True)
class GroupLassoModel(FederatedLinearRegressor):
    """Least squares and the norms of groups, whatever chooses α."""

    groups: Any = None
    group_weights: Any = "sqrt"

    def _loss(self, data: FederatedData) -> Any:
        return Squared()

    def _penalty(self, lam: float) -> Any:
        groups = np.arange(self.n_features_in_) if self.groups is None else self.groups
        return GroupL2(lam, groups, self.group_weights)


@dataclass(eq=False, repr=False)
class FederatedGroupLasso(WithAlpha, GroupLassoModel):
    """minimise  1/(2N) Σ_i (y_i − x_i·w − b)² + α Σ_g ω_g ‖w_g‖₂.

    ``groups`` is one label per feature (integers or strings), or a list of lists of feature numbers; None
    makes each feature a group of its own, which is the lasso. ``group_weights`` are the ω_g: "sqrt" (√ of the
    group's size), None (all one), or one positive number per group. With sample weights the first term is
    1/(2Σs) Σ_i s_i (…)². One round where clients may send Gram matrices. The other parameters and the fitted
    attributes are those of ``FederatedLinearModel``.
    """


@dataclass(eq=False, repr=False)
class FederatedGroupLassoCV(ChoosesAlpha, GroupLassoModel):
    """minimise  1/(2N) Σ_i (y_i − x_i·w − b)² + α Σ_g ω_g ‖w_g‖₂,  α by cross-validation.

    ``groups`` and ``group_weights`` are those of ``FederatedGroupLasso``. The mean squared errors
    of held-out rows are ``mse_path_`` (α, fold), twice the loss above. For the other parameters see
    ``CrossValidated`` and ``FederatedLinearModel``.
    """
