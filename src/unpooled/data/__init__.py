"""Federated data: reading, checking, storing and splitting rows by client, and example data sets."""

from unpooled.data import datasets, partition
from unpooled.data.federated import FederatedData

__all__ = ["FederatedData", "datasets", "partition"]
