"""Dense rows as local loops read copies of them: without a client's vacant columns, or without any zero.

Coefficients lie in the order that suits the copy: ``ordered`` and ``restored`` go there and back, ``gather``
and ``scatter`` between all features and those that a client has, ``room`` numbers for each.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from unpooled.algorithms.vectors import assign
from unpooled.engines.local.columns.localise import gather
from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel
from unpooled.kernels.feature_major_rows import FeatureMajorRows, stride_of
from unpooled.kernels.layout import Layout
from unpooled.kernels.rows import DenseRows


class Occupied(NamedTuple):
    """The clients' rows without their vacant columns.

    Client k occupies the columns ``feature[first[k] : first[k + 1]]``; its rows of them, one after the other,
    start at ``entries[start[k]]``.
    """

    first: Array
    feature: Array
    start: Array
    entries: Array

    def for_outputs(self, n_outputs: int) -> Occupied:
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
