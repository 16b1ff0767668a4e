"""Data to try things on: synthetic data with a known truth, and bundled real data with real clients."""

from unpooled.datasets.digits import digits_by_form
from unpooled.datasets.synthetic import (
    gaussian_start,
    low_rank_regression,
    sparse_classification,
    sparse_regression,
)

__all__ = [
    "digits_by_form",
    "gaussian_start",
    "low_rank_regression",
    "sparse_classification",
    "sparse_regression",
]
