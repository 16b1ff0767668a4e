"""Weights u_j ≥ 0 that a penalty gives to coefficients; 0 leaves a coefficient unpenalised."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from unpooled.kernels.arrays import Float
from unpooled.penalties.inputs import finite_array

Weights = tuple[Any, ...] | None
SHOWN = 12  # weights that a repr prints


def parsed(weights: Any) -> Weights:
    """Numbers ≥ 0 of one or two dimensions, as tuples, so that a penalty stays hashable; None for none."""
    if weights is None:
        return None
    array = finite_array("weights", weights)
    if array.ndim > 2 or not array.size:
        raise ValueError(f"weights have shape {array.shape}: expected one number per feature or coefficient")
    if (array < 0.0).any():
        raise ValueError(f"weights hold {array.min():g}: expected numbers of at least 0 (0: unpenalised)")
    if not array.any():
        raise ValueError("all weights are 0, so that nothing is penalised: use Zero()")
    numbers = array.astype(np.float64).tolist()
    return tuple(map(tuple, numbers)) if array.ndim == 2 else tuple(numbers)


def spread(weights: tuple[Any, ...], shape: tuple[int, ...]) -> Float:
    """The weights in the shape of the coefficients; one per feature serves all classes."""
    array = np.array(weights, dtype=np.float64)
    if array.shape == shape:
        return array
    if len(shape) == 2 and array.shape == shape[:1]:
        return np.repeat(array[:, None], shape[1], axis=1)
    if array.ndim == 1 and array.size == math.prod(shape):
        return array.reshape(shape)
    raise ValueError(f"weights have shape {array.shape}, but the coefficients have {shape}")


def said(weights: Weights) -> str:
    """How a penalty's repr shows its weights: nothing where there are none."""
    if weights is None:
        return ""
    array = np.array(weights)
    if array.size <= SHOWN:
        return f", weights={array.tolist()!r}"
    free = int(np.sum(array == 0.0))
    return f", weights=<{array.size} weights{f', {free} of them 0' if free else ''}>"


def flat_weights(weights: Weights, shape: tuple[int, ...], order: Literal["C", "F"]) -> Float:
    """The u_j of the flat coefficients; 1 for all where there are none."""
    if weights is None:
        return np.ones(math.prod(shape))
    return spread(weights, shape).ravel(order=order)


def without(weights: Weights, columns: Sequence[int], row_shape: tuple[int, ...]) -> Float:
    """The weights with zeros for these features."""
    u = np.ones(row_shape) if weights is None else np.array(weights)
    if u.ndim < len(row_shape):
        u = spread(tuple(u), row_shape)
    u.reshape(math.prod(row_shape), -1)[list(columns)] = 0.0
    return u
