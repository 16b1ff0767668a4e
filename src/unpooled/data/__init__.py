"""Rows by client: how they are read, checked, kept, split, and where to find some to try things on."""

from unpooled.data import datasets, partition
from unpooled.data.federated import FederatedData

__all__ = ["FederatedData", "datasets", "partition"]
