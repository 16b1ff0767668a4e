"""Generated images in the shape of handwriting by writer: 28 × 28, strokes on an empty background.

What matters to a benchmark is kept: about 80 % of the pixels are zero, and they lie together, as the
paper around a character does. A class is a smooth pattern, a writer's hand and each image add their own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import unpooled as up

SIDE, COARSE = 28, 8
ZERO_SHARE = 0.8


def characters(seed: int, n_clients: int, mean_rows: int, n_classes: int) -> up.FederatedData:
    """``n_clients`` writers of about ``mean_rows`` images in [0, 1], float32, with labels 0 … C−1."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(round(0.7 * mean_rows), round(1.3 * mean_rows) + 1, n_clients)
    writer = np.repeat(np.arange(n_clients), sizes)
    label = rng.integers(n_classes, size=len(writer))
    label[:n_classes] = np.arange(n_classes)
    classes, hands = (rng.standard_normal((n, COARSE, COARSE)) for n in (n_classes, n_clients))
    up_sampling = _interpolation()
    edge = _distance_from_middle()
    X = np.empty((len(writer), SIDE * SIDE), np.float32)
    level = None
    for k in range(n_clients):
        rows = np.flatnonzero(writer == k)
        coarse = 1.5 * classes[label[rows]] + 0.5 * hands[k]
        coarse += 0.7 * rng.standard_normal(coarse.shape)
        ink = up_sampling @ coarse @ up_sampling.T - edge
        if level is None:
            level = np.quantile(ink, ZERO_SHARE)
        X[rows] = np.clip(ink - level, 0, 1).reshape(len(rows), -1)
    return up.FederatedData.from_arrays(X, label, writer)


def _interpolation() -> NDArray[np.float64]:
    """Linear interpolation from COARSE to SIDE points."""
    at = np.linspace(0, COARSE - 1, SIDE)
    return np.maximum(0, 1 - np.abs(at[:, None] - np.arange(COARSE)))


def _distance_from_middle() -> NDArray[np.float64]:
    """A penalty that keeps ink off the border."""
    x = np.linspace(-1, 1, SIDE) ** 2
    return 2.5 * (x[:, None] + x)
