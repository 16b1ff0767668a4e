"""Server-side aggregation of uploads: mean, median, trimmed mean, differential privacy."""

from unpooled.aggregation.base import Aggregate, CoordinateMedian, Mean, TrimmedMean

__all__ = ["Aggregate", "CoordinateMedian", "Mean", "TrimmedMean"]
