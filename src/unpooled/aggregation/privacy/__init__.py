"""Differential privacy of what a run releases, for a client as a whole. See docs/privacy.md."""

from unpooled.aggregation.privacy.central import CentralDP
from unpooled.aggregation.privacy.spent import Spent

__all__ = ["CentralDP", "Spent"]
