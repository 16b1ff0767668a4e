"""The loss's residual and the prox in NumPy, over any leading axes: for one client or a stack of them."""

from __future__ import annotations

import numpy as np

from benchmarks.work import Step, Work
from unpooled.kernels.arrays import Array


def residual(work: Work, Z: Array, y: Array) -> Array:
    """dℓ/dz of margins Z (…, b, C) for targets y (…, b), in place."""
    if not work.is_softmax:
        Z[..., 0] -= y
        return Z
    Z -= Z.max(axis=-1, keepdims=True)
    np.exp(Z, out=Z)
    Z /= Z.sum(axis=-1, keepdims=True)
    label = y.astype(np.intp)[..., None]
    np.put_along_axis(Z, label, np.take_along_axis(Z, label, -1) - 1, -1)
    return Z


def prox(work: Work, h: Array, step: Step) -> Array:
    """The point w (…, p, C) that the dual vectors h stand for after a step."""
    v, t = h / -step.c, step.A / step.c * work.lam
    if work.matrix is None:
        return v - np.clip(v, -t, t)
    U, s, Vt = np.linalg.svd(v.reshape(*v.shape[:-2], *work.matrix), full_matrices=False)
    return ((U * np.maximum(s - t, 0)[..., None, :]) @ Vt).reshape(v.shape)
