"""Statistical inference after a federated fit: intervals, tests, heterogeneity, influence, stability."""

from unpooled.inference.debiased import debiased_lasso
from unpooled.inference.heterogeneity import Heterogeneity, heterogeneity
from unpooled.inference.influence import Influence, influence
from unpooled.inference.multiplicity import benjamini_hochberg
from unpooled.inference.result import Inference
from unpooled.inference.stability import Stability, stability_selection

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
