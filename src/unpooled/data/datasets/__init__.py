"""Example data: synthetic data with a known truth, and real data with real clients."""

from unpooled.data.datasets.digits import digits_by_form
from unpooled.data.datasets.femnist import femnist
from unpooled.data.datasets.leaf import load_leaf
from unpooled.data.datasets.mnist import mnist_by_writer
from unpooled.data.datasets.synthetic import (
    gaussian_start,
    low_rank_regression,
    sparse_classification,
    sparse_regression,
)
from unpooled.data.datasets.tff import load_tff

__all__ = [
    "digits_by_form",
    "femnist",
    "gaussian_start",
    "load_leaf",
    "load_tff",
    "low_rank_regression",
    "mnist_by_writer",
    "sparse_classification",
    "sparse_regression",
]
