"""Medians and trimmed means of uploads in compiled code, the coordinates in parallel."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numba import prange

from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import compiled, kernel

ROUNDING = 1e-9  # a client with less than this share of its weight left is cut: its upload may be huge


def robust_locations(mean: Array, weights: Array, up: Array, fraction: float) -> None:
    """Add to ``mean`` the trimmed mean of every coordinate, the median where ``fraction`` is one half."""
    total = weights.sum()
    shares = weights / total
    for q in prange(mean.shape[1]):
        for i in range(mean.shape[0]):
            values = np.empty(weights.size)
            for s in range(weights.size):
                values[s] = up[s, i, q]
            mean[i, q] += total * location(values, shares, fraction)


@kernel
def location(values: Array, shares: Array, fraction: float) -> Any:
    """Σ w_s v_s / Σ w_s over the sorted values, w_s the part of share s between β and 1 − β from below."""
    order = np.argsort(values)
    below, kept, weighted = 0.0, 0.0, 0.0
    for s in order:
        above = below + shares[s]
        left = min(above, 1.0 - fraction) - max(below, fraction)
        if left > ROUNDING * shares[s]:
            kept += left
            weighted += left * values[s]
        below = above
    return weighted / kept if kept > 0.0 else median(values, shares, order)


@kernel
def median(values: Array, shares: Array, order: Array) -> Any:
    """Where the weight from below reaches one half; halfway to the next value where it does so exactly."""
    below = 0.0
    for i in range(order.size):
        below += shares[order[i]]
        if below > 0.5 - ROUNDING:
            if below < 0.5 + ROUNDING and i + 1 < order.size:
                return 0.5 * (values[order[i]] + values[order[i + 1]])
            return values[order[i]]
    return values[order[order.size - 1]]


@functools.cache
def compiled_locations() -> Any:
    """``robust_locations``, cached on disk."""
    return compiled(robust_locations, parallel=True)
