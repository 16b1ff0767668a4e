"""Checks at the entrance: an error says which value was wrong and what is accepted."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from unpooled.kernels.arrays import Array


def number(name: str, value: Any, low: float, high: float = math.inf) -> float:
    """``value`` as a float in [low, high]."""
    accepted = (
        f"a number of at least {low:g}" if high == math.inf else f"a number between {low:g} and {high:g}"
    )
    try:
        result = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name}={value!r}: expected {accepted}") from None
    if not low <= result <= high:  # also refuses NaN
        raise ValueError(f"{name}={value!r}: expected {accepted}")
    return result


def finite_number(name: str, value: Any, low: float) -> float:
    """``value`` as a finite float of at least ``low``."""
    result = number(name, value, low)
    if math.isinf(result):
        raise ValueError(f"{name}={value!r}: expected a finite number")
    return result


def positive_number(name: str, value: Any) -> float:
    """``value`` as a float above zero; infinity is accepted."""
    result = number(name, value, 0.0)
    if result == 0.0:
        raise ValueError(f"{name}={value!r}: expected a number above 0 (inf: no constraint)")
    return result


def finite_array(name: str, value: ArrayLike, shape: tuple[int, ...] | None = None) -> Array:
    """``value`` as a floating array without NaN or infinity, of ``shape`` if one is given."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} has dtype {array.dtype}: expected real numbers")
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    if shape is not None and array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}: expected {shape}")
    if array.ndim == 0:
        raise ValueError(f"{name}={value!r} is a single number: expected an array")
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name} holds {array[where]} at index {where}: expected finite numbers")
    return array


def flat(array: Array) -> Array:
    """A fresh row-major float64 copy, as the records take it."""
    return np.array(array, dtype=np.float64, order="C").reshape(-1)
