"""Copies of dense rows that leave zeros out: what they are, which one is worth it, and how it is made.

    OccupiedColumns   a client's rows without the columns that are zero in all of them
    NonZeros          a client's rows without any zero, for many outputs; coefficients lie feature by feature

Images have margins, and what is inside is mostly empty; sites lack levels of a category. ``layout_of``
decides by counting. A layout says how coefficients lie in its local loop: ``ordered`` and ``restored`` go
there and back, ``gather`` and ``scatter`` between all features and those of a client, ``room`` is numbers per
feature.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from unpooled._validation import is_mapped
from unpooled.algorithms.vectors import assign
from unpooled.engines.local.columns.local_numbering import gather
from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel
from unpooled.kernels.feature_major_rows import FeatureMajorRows, stride_of
from unpooled.kernels.layout import Layout
from unpooled.kernels.rows import DenseRows

if TYPE_CHECKING:
    from unpooled.data.federated import FederatedData

SAMPLE = 32  # clients that are counted first
WORTHWHILE = 0.85  # of the columns; clients that occupy more gain little from leaving the others out
SPARSE = 0.35  # of the entries; beyond it, products of whole rows are faster
SEVERAL = 24  # outputs, from which on skipping zeros is faster than whole vectors of them
MOST_BYTES = 2**30  # of copies
LINE = 64  # bytes of a cache line: rows of copies begin at one


class OccupiedColumns(NamedTuple):
    """The clients' rows without their empty columns: those that are zero in all rows of the client.

    Client k occupies the columns ``feature[first[k] : first[k + 1]]``; its rows of them, one after the other,
    start at ``entries[start[k]]``.
    """

    first: Array
    feature: Array
    start: Array
    entries: Array

    def for_outputs(self, n_outputs: int) -> OccupiedColumns:
        """The same for coefficients of so many outputs."""
        return self

    @kernel
    def local(self, rows: Any, offsets: Array, client: int) -> DenseRows:
        """The client's rows."""
        first, stop = offsets[client], offsets[client + 1]
        shape = stop - first, self.first[client + 1] - self.first[client]
        X = self.entries[self.start[client] : self.start[client + 1]].reshape(shape)
        return DenseRows(X, rows.y[first:stop], weights_of(rows, first, stop))

    @kernel
    def nothing(self, rows: Any, n_columns: int) -> DenseRows:
        """So many columns and not one row."""
        return DenseRows(np.empty((0, n_columns), rows.X.dtype), rows.y[:0], rows.weight[:0])

    def ordered(self, vectors: Array, layout: Layout) -> Array:
        """Flat vectors, the rows of an array, as ``gather`` wants them: as they are."""
        return vectors

    def restored(self, vectors: Array, layout: Layout) -> Array:
        """The reverse of ``ordered``."""
        return vectors

    @kernel
    def room(self, n_outputs: int) -> int:
        """The numbers that a feature's coefficients take up in the local loop."""
        return n_outputs

    @kernel
    def gather(self, x: Array, feature: Array, p: int, n_outputs: int, out: Array) -> None:
        """Out ← x on these features, and its intercepts where out has room for them."""
        gather(x, feature, feature.size, p, n_outputs, out)

    @kernel
    def scatter(self, x: Array, feature: Array, p: int, n_outputs: int, out: Array) -> None:
        """The reverse: out on these features, and on its intercepts where x has some, ← x."""
        n = feature.size
        for c in range(n_outputs):
            for i in range(n):
                out[c * p + feature[i]] = x[c * n + i]
        copy_intercepts(x, n_outputs * n, out, n_outputs * p)


class NonZeros(NamedTuple):
    """The clients' non-zeros; columns are numbered anew, 0 the first that the client occupies.

    The coefficients of a feature take up ``stride`` numbers (see ``feature_major``).
    """

    first: Array
    feature: Array
    starts: Array
    columns: Array
    values: Array
    stride: int = 0

    def for_outputs(self, n_outputs: int) -> NonZeros:
        """The same for coefficients of so many outputs."""
        return self._replace(stride=stride_of(n_outputs, self.values.itemsize))

    @kernel
    def local(self, rows: Any, offsets: Array, client: int) -> FeatureMajorRows:
        """The client's rows."""
        first, stop = offsets[client], offsets[client + 1]
        n_columns = self.first[client + 1] - self.first[client]
        y, weight = rows.y[first:stop], weights_of(rows, first, stop)
        return FeatureMajorRows(
            self.values, self.columns, self.starts[first : stop + 1], n_columns, self.stride, y, weight
        )

    @kernel
    def nothing(self, rows: Any, n_columns: int) -> FeatureMajorRows:
        """So many columns and not one row."""
        y, weight = rows.y[:0], rows.weight[:0]
        return FeatureMajorRows(self.values, self.columns, self.starts[:1], n_columns, self.stride, y, weight)

    def ordered(self, vectors: Array, layout: Layout) -> Array:
        """Flat vectors, the rows of an array, feature by feature."""
        n, C = layout.n_coefficients, layout.n_outputs
        count, size = len(vectors), n // C * self.stride
        out = np.zeros((count, size + layout.n_intercepts), vectors.dtype)
        coefficients = out[:, :size].reshape(count, -1, self.stride)
        coefficients[:, :, :C] = vectors[:, :n].reshape(count, C, -1).swapaxes(1, 2)
        out[:, size:] = vectors[:, n:]
        return out

    def restored(self, vectors: Array, layout: Layout) -> Array:
        """The reverse of ``ordered``."""
        n, C = layout.n_coefficients, layout.n_outputs
        count, size = len(vectors), n // C * self.stride
        out = np.empty((count, layout.size), vectors.dtype)
        coefficients = vectors[:, :size].reshape(count, -1, self.stride)
        out[:, :n].reshape(count, C, -1)[:] = coefficients[:, :, :C].swapaxes(1, 2)
        out[:, n:] = vectors[:, size:]
        return out

    @kernel
    def room(self, n_outputs: int) -> int:
        """The numbers that a feature's coefficients take up in the local loop."""
        return self.stride

    @kernel
    def gather(self, x: Array, feature: Array, p: int, n_outputs: int, out: Array) -> None:
        """Out ← x on these features, and its intercepts where out has room for them; both lie in order."""
        for i in range(feature.size):
            here, there = i * self.stride, feature[i] * self.stride
            assign(out[here : here + self.stride], x[there : there + self.stride])
        copy_intercepts(x, self.stride * p, out, self.stride * feature.size)

    @kernel
    def scatter(self, x: Array, feature: Array, p: int, n_outputs: int, out: Array) -> None:
        """The reverse: out on these features, and on its intercepts where x has some, ← x."""
        for i in range(feature.size):
            here, there = i * self.stride, feature[i] * self.stride
            assign(out[there : there + self.stride], x[here : here + self.stride])
        copy_intercepts(x, self.stride * feature.size, out, self.stride * p)


@kernel
def copy_intercepts(x: Array, first: int, out: Array, start: int) -> None:
    """What lies behind the coefficients, from x[first] to out[start], where both have it."""
    for i in range(min(x.size - first, out.size - start)):
        out[start + i] = x[first + i]


@kernel
def weights_of(rows: Any, first: int, stop: int) -> Array:
    """The sample weights of these rows; none where there are none."""
    weight: Array = rows.weight
    return weight[first:stop] if weight.size > 0 else weight


RowLayout = OccupiedColumns | NonZeros | None
_found: WeakKeyDictionary[FederatedData, dict[bool, RowLayout]] = WeakKeyDictionary()


def layout_of(data: FederatedData, n_outputs: int) -> RowLayout:
    """The best layout of dense data, made once and kept as long as the data."""
    found, several = _found.setdefault(data, {}), n_outputs >= SEVERAL
    if several not in found:
        found[several] = best_layout(flat_rows(data), data.offsets, several)
    return found[several]


def best_layout(X: Array, offsets: Array, several: bool) -> RowLayout:
    """The rows without zeros, or without empty columns; None where that gains little or copies too much."""
    if is_mapped(X):
        return None
    n_clients, p = len(offsets) - 1, X.shape[1]
    layout = chosen_layout(lambda some: tally(X, offsets, some, several), n_clients, p, X.itemsize, several)
    return laid_out(X, offsets, layout)


def flat_rows(data: FederatedData) -> Array:
    """Dense rows as vectors."""
    return np.asarray(data.X).reshape(data.n_rows, -1)


def looked_at(n_clients: int) -> list[Array]:
    """The clients to count: a sample first, then all."""
    clients = np.arange(n_clients)
    return [clients[:: n_clients // SAMPLE], clients] if n_clients >= 2 * SAMPLE else [clients]


class Tally(NamedTuple):
    """Counts of each client: rows, columns that are not empty, non-zeros (every entry, for few outputs)."""

    rows: Array
    columns: Array
    nonzeros: Array


def tally(X: Array, offsets: Array, chosen: Array, several: bool) -> Tally:
    """The counts that decide the layout of these clients' rows."""
    rows = np.diff(offsets)[chosen]
    columns, nonzeros = np.empty(len(chosen), np.int64), rows * X.shape[1]
    for s, k in enumerate(chosen):
        present = X[offsets[k] : offsets[k + 1]] != 0
        columns[s] = np.count_nonzero(present.any(axis=0))
        if several:
            nonzeros[s] = np.count_nonzero(present)
    return Tally(rows, columns, nonzeros)


def chosen_layout(
    count: Callable[[Array], Tally], n_clients: int, p: int, itemsize: int, several: bool
) -> str | None:
    """The layout of all clients' rows, by ``count`` of a sample and, where that is promising, of all."""
    layout = None
    for some in looked_at(n_clients):
        layout = layout_for(count(some), p, itemsize, several)
        if layout is None:
            break
    return layout


def layout_for(counts: Tally, p: int, itemsize: int, several: bool) -> str | None:
    """The layout of rows of p columns: "nonzeros", "columns" (the occupied ones), or None for all of it."""
    n_nonzeros, n_entries = int(counts.nonzeros.sum()), p * int(counts.rows.sum())
    if several and n_nonzeros <= SPARSE * n_entries:
        return "nonzeros" if n_nonzeros * (itemsize + 4) <= MOST_BYTES else None
    if counts.columns.mean() > WORTHWHILE * p:
        return None
    return "columns" if int(counts.columns @ counts.rows) * itemsize <= MOST_BYTES else None


def laid_out(X: Array, offsets: Array, layout: str | None) -> RowLayout:
    """A copy of the rows in this layout."""
    if layout is None:
        return None
    parts = [X[first:stop] for first, stop in itertools.pairwise(offsets)]
    multiple = stride_of(1, X.itemsize) if layout == "columns" else 1
    columns = [columns_of(part, multiple) for part in parts]
    counts = np.array([len(own) for own in columns])
    first, feature = np.concatenate([[0], np.cumsum(counts)]), np.concatenate(columns)
    if layout == "nonzeros":
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
    return OccupiedColumns(first, feature, start, entries)


def columns_of(part: Array, multiple: int) -> Array:
    """The columns that rows occupy, and a few empty ones, so that their number is a multiple of ``multiple``.

    Rows of whole SIMD vectors are faster than shorter ones.
    """
    is_occupied = (part != 0).any(axis=0)
    lacking = -np.count_nonzero(is_occupied) % multiple
    is_occupied[np.flatnonzero(~is_occupied)[:lacking]] = True
    return np.flatnonzero(is_occupied)


def aligned(size: int, dtype: np.dtype[Any]) -> Array:
    """An uninitialised array that begins at a cache line."""
    room = np.empty(size * dtype.itemsize + LINE, np.uint8)
    first = -room.ctypes.data % LINE
    return room[first : first + size * dtype.itemsize].view(dtype)
