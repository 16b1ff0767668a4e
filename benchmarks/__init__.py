"""Benchmarks: ratios against contenders doing the same work, limits, growth, latency, precision, threads."""
