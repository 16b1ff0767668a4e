"""How sure a federated fit is of its coefficients, and whether its sites agree."""

from unpooled.inference.debiased import debiased_lasso
from unpooled.inference.leave_one_out import Influence, influence
from unpooled.inference.multiplicity import benjamini_hochberg
from unpooled.inference.result import Inference
from unpooled.inference.site_scores import Heterogeneity, heterogeneity
from unpooled.inference.stability import stability_selection
from unpooled.inference.stable_columns import Stability

__all__ = [
    "Heterogeneity",
    "Inference",
    "Influence",
    "Stability",
    "benjamini_hochberg",
    "debiased_lasso",
    "heterogeneity",
    "influence",
    "stability_selection",
]
