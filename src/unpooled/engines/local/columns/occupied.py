"""Which copies of dense rows are kept, and how they are made (``forms`` has what they are).

Images have margins, and what is inside is mostly empty; sites lack levels of a category. Rows with several
outputs and few non-zeros are kept as these, their coefficients feature by feature (``feature_major``); others
without the columns that the client leaves vacant.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from unpooled._validation import is_mapped
from unpooled.engines.local.columns.forms import NonZeros, Occupied
from unpooled.kernels.arrays import Array
from unpooled.kernels.feature_major_rows import stride_of

if TYPE_CHECKING:
    from unpooled.data.federated import FederatedData

SAMPLE = 32  # clients that are looked at first
WORTHWHILE = 0.85  # of the columns; clients that occupy more gain little from leaving the others out
SPARSE = 0.35  # of the entries; beyond it, products of whole rows are faster
SEVERAL = 24  # outputs, from which on skipping zeros is faster than whole vectors of them
MOST_BYTES = 2**30  # of copies
LINE = 64  # bytes of a cache line: rows of copies begin at one


Kept = Occupied | NonZeros | None
_found: WeakKeyDictionary[FederatedData, dict[bool, Kept]] = WeakKeyDictionary()


def occupied_of(data: FederatedData, n_outputs: int) -> Kept:
    """``occupied`` rows of dense data, found once and kept as long as the data are."""
    found, several = _found.setdefault(data, {}), n_outputs >= SEVERAL
    if several not in found:
        found[several] = occupied(flat_rows(data), data.offsets, several)
    return found[several]


def occupied(X: Array, offsets: Array, several: bool) -> Kept:
    """The rows without zeros, or without vacant columns; None where that is little, or too much to copy."""
    if is_mapped(X):
        return None
    n_clients, p = len(offsets) - 1, X.shape[1]
    form = chosen_form(lambda some: tally(X, offsets, some, several), n_clients, p, X.itemsize, several)
    return kept(X, offsets, form)


def flat_rows(data: FederatedData) -> Array:
    """Dense rows as vectors."""
    return np.asarray(data.X).reshape(data.n_rows, -1)


def looked_at(n_clients: int) -> list[Array]:
    """The clients that are looked at: some first, then all."""
    clients = np.arange(n_clients)
    return [clients[:: n_clients // SAMPLE], clients] if n_clients >= 2 * SAMPLE else [clients]


class Tally(NamedTuple):
    """Of each client: its rows, the columns it occupies, its non-zeros (every entry, for few outputs)."""

    rows: Array
    columns: Array
    nonzeros: Array


def tally(X: Array, offsets: Array, chosen: Array, several: bool) -> Tally:
    """What decides how the rows of these clients are kept."""
    rows = np.diff(offsets)[chosen]
    columns, nonzeros = np.empty(len(chosen), np.int64), rows * X.shape[1]
    for s, k in enumerate(chosen):
        present = X[offsets[k] : offsets[k + 1]] != 0
        columns[s] = np.count_nonzero(present.any(axis=0))
        if several:
            nonzeros[s] = np.count_nonzero(present)
    return Tally(rows, columns, nonzeros)


def chosen_form(
    count: Callable[[Array], Tally], n_clients: int, p: int, itemsize: int, several: bool
) -> str | None:
    """How the rows of all clients are kept, by what ``count`` tells of some of them, then of all."""
    form = None
    for some in looked_at(n_clients):
        form = form_of(count(some), p, itemsize, several)
        if form is None:
            break
    return form


def form_of(counts: Tally, p: int, itemsize: int, several: bool) -> str | None:
    """Whether rows of p columns are kept as "nonzeros", without "vacant" columns, or as they are (None)."""
    n_nonzeros, n_entries = int(counts.nonzeros.sum()), p * int(counts.rows.sum())
    if several and n_nonzeros <= SPARSE * n_entries:
        return "nonzeros" if n_nonzeros * (itemsize + 4) <= MOST_BYTES else None
    if counts.columns.mean() > WORTHWHILE * p:
        return None
    return "vacant" if int(counts.columns @ counts.rows) * itemsize <= MOST_BYTES else None


def kept(X: Array, offsets: Array, form: str | None) -> Kept:
    """The rows in this form."""
    if form is None:
        return None
    parts = [X[first:stop] for first, stop in itertools.pairwise(offsets)]
    multiple = stride_of(1, X.itemsize) if form == "vacant" else 1
    columns = [columns_of(part, multiple) for part in parts]
    counts = np.array([len(own) for own in columns])
    first, feature = np.concatenate([[0], np.cumsum(counts)]), np.concatenate(columns)
    if form == "nonzeros":
        present = X != 0
        starts = np.concatenate([[0], np.count_nonzero(present, axis=1)]).cumsum()
        own_number = [np.nonzero(part[:, own])[1] for part, own in zip(parts, columns, strict=True)]
        narrow = np.uint16 if counts.max(initial=0) <= 2**16 else np.uint32
        numbers = np.concatenate(own_number, dtype=narrow, casting="unsafe")
        return NonZeros(first, feature, starts, numbers, X[present])
    start = np.concatenate([[0], np.cumsum(counts * np.diff(offsets))])
    entries = aligned(start[-1], X.dtype)
    for k, part in enumerate(parts):
        copy = entries[start[k] : start[k + 1]].reshape(len(part), counts[k])
        np.take(part, columns[k], axis=1, out=copy, mode="clip")
    return Occupied(first, feature, start, entries)


def columns_of(part: Array, multiple: int) -> Array:
    """The columns that rows occupy, and as many vacant ones as it takes to have a multiple of so many.

    Rows of whole vectors are faster than shorter ones that are not.
    """
    is_occupied = (part != 0).any(axis=0)
    lacking = -np.count_nonzero(is_occupied) % multiple
    is_occupied[np.flatnonzero(~is_occupied)[:lacking]] = True
    return np.flatnonzero(is_occupied)


def aligned(size: int, dtype: np.dtype[Any]) -> Array:
    """An array without contents that begins at a cache line."""
    room = np.empty(size * dtype.itemsize + LINE, np.uint8)
    first = -room.ctypes.data % LINE
    return room[first : first + size * dtype.itemsize].view(dtype)
