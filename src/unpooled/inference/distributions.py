"""Tail probabilities and quantiles of test statistics; scipy.special is imported on first use."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from unpooled.kernels.arrays import Float


def two_sided(z: ArrayLike, degrees: float) -> Float:
    """P(|T| ≥ |z|) for Student's T with ``degrees`` degrees of freedom; normal if they are infinite."""
    from scipy import special

    size = -np.abs(np.asarray(z, dtype=np.float64))
    return np.asarray(2.0 * (special.ndtr(size) if math.isinf(degrees) else special.stdtr(degrees, size)))


def quantile(level: float, degrees: float) -> float:
    """t with P(|T| ≤ t) = level."""
    from scipy import special

    tail = 0.5 + 0.5 * level
    return float(special.ndtri(tail) if math.isinf(degrees) else special.stdtrit(degrees, tail))


def chi_squared_tail(x: float, degrees: int) -> float:
    """P(χ² ≥ x)."""
    from scipy import special

    return float(special.chdtrc(degrees, x))


def f_tail(x: float, degrees: int, of_noise: int) -> float:
    """P(F ≥ x)."""
    from scipy import special

    return float(special.fdtrc(degrees, of_noise, x))
