"""What the server makes of uploads: means, robust locations, differential privacy."""

from unpooled.aggregation.base import Aggregate, CoordinateMedian, Mean, TrimmedMean

__all__ = ["Aggregate", "CoordinateMedian", "Mean", "TrimmedMean"]
