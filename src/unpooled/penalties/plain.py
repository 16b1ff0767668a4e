"""A user's own penalty in plain NumPy, in the place of a compiled record: local loops then run uncompiled."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from unpooled.kernels.arrays import Array
from unpooled.kernels.layout import Layout
from unpooled.penalties.regulariser import DualStep, ascend

ENVELOPE = 1e-5  # (w − prox_{sh}(w))/s with s this small is a subgradient of h to about 1e-11


class PlainRegulariser(NamedTuple):
    """A penalty object with ``value(w)`` and ``prox(v, step)``, perhaps ``constrained_prox``."""

    penalty: Any
    layout: Layout
    ball: float

    def prox(self, v: Array, step: float, center: Array, radius: float, out: Array) -> None:
        """As ``Regulariser.prox``."""
        w, _ = self.layout.unpack(v)
        n = self.layout.n_coefficients
        if math.isinf(radius) and math.isinf(self.ball):
            w = self.penalty.prox(w, step)
        elif hasattr(self.penalty, "constrained_prox"):
            w = self.penalty.constrained_prox(w, step, self.layout.unpack(center)[0], radius, self.ball)
        else:
            name = type(self.penalty).__name__
            raise TypeError(f"{name} has no constrained_prox, which a finite radius or ball needs")
        out[:n] = np.asarray(w).ravel(order=self.layout.order)
        out[n:] = v[n:]

    def dual_step(self, step: DualStep, h: Array, G: Array, center: Array, v: Array, w: Array) -> None:
        """As ``Regulariser.dual_step``."""
        ascend.py_func(step, h, G, w)
        v[:] = h / -step.c
        self.prox(v, step.A / step.c, center, step.radius, w)

    def subgradient(self, w: Array, out: Array) -> None:
        """As ``Regulariser.subgradient``."""
        n = self.layout.n_coefficients
        point = self.penalty.prox(self.layout.unpack(w)[0], ENVELOPE)
        out[:n] = (w[:n] - np.asarray(point).ravel(order=self.layout.order)) / ENVELOPE
        out[n:] = 0.0
