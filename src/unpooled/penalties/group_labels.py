"""Which coefficients form a group: labels or index lists, checked and made hashable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from unpooled.kernels.arrays import Array
from unpooled.penalties.base import Order


class Labels(NamedTuple):
    """One label per coefficient, row by row, and the shape they came in."""

    names: tuple[Any, ...]
    shape: tuple[int, ...]


Groups = Labels | tuple[tuple[int, ...], ...]


def parsed(groups: Any) -> Groups:
    """Labels (an array, or a flat list) or a list of index lists, in a form that can be hashed."""
    if isinstance(groups, Labels):
        return groups
    if isinstance(groups, np.ndarray) or not any(_is_list(item) for item in groups):
        return _parsed_labels(np.asarray(groups))
    return _parsed_index_lists(groups)


def codes(groups: Groups) -> tuple[Array, int]:
    """The number of the group of each coefficient, groups in sorted or given order; how many groups."""
    if isinstance(groups, Labels):
        names, inverse = np.unique(np.array(groups.names), return_inverse=True)
        return inverse.reshape(groups.shape).astype(np.int64), names.size
    of = np.empty(sum(map(len, groups)), dtype=np.int64)
    for number, indices in enumerate(groups):
        of[list(indices)] = number
    return of, len(groups)


def flat_codes(groups: Groups, shape: tuple[int, ...], order: Order) -> tuple[Array, int]:
    """``codes`` for coefficients of ``shape`` flattened in ``order``; rows share a label if shapes say so."""
    of, count = codes(groups)
    if of.shape == shape[:1] and len(shape) == 2:
        of = np.broadcast_to(of[:, None], shape)
    if of.shape != shape:
        accepted = f"{of.shape}, or {(*of.shape, 'C')}" if of.ndim == 1 else f"{of.shape}"
        raise ValueError(
            f"groups cover coefficients of shape {accepted}: the coefficients have shape {shape}"
        )
    return np.ravel(of, order=order), count


def _is_list(item: Any) -> bool:
    return isinstance(item, Sequence | np.ndarray) and not isinstance(item, str | bytes)


def _parsed_labels(labels: Array) -> Labels:
    if labels.size == 0:
        raise ValueError("groups is empty: expected one label per coefficient or a list of index lists")
    if labels.dtype.kind not in "iubUSf" or (labels.dtype.kind == "f" and np.isnan(labels).any()):
        raise ValueError(
            f"groups has labels of dtype {labels.dtype}: expected integers or strings, without NaN"
        )
    return Labels(tuple(labels.ravel().tolist()), labels.shape)


def _parsed_index_lists(groups: Sequence[Any]) -> tuple[tuple[int, ...], ...]:
    owner: dict[int, int] = {}
    lists = []
    for number, group in enumerate(groups):
        indices = np.asarray(group)
        if indices.ndim != 1 or indices.size == 0 or indices.dtype.kind not in "iu" or (indices < 0).any():
            raise ValueError(
                f"group {number} is {group!r}: expected a non-empty list of indices of at least 0"
            )
        lists.append(tuple(indices.tolist()))
        for index in lists[-1]:
            if index in owner:
                raise ValueError(
                    f"index {index} is in group {owner[index]} and in group {number}: groups must not overlap"
                )
            owner[index] = number
    missing = next((index for index in range(max(owner)) if index not in owner), None)
    if missing is not None:
        raise ValueError(f"index {missing} is in no group: the groups must cover 0 to {max(owner)}")
    return tuple(lists)
