"""Sparse rows for coefficients in feature-major order.

With coefficients in output-major order, as everywhere else (``rows``), a non-zero x_ij multiplies C
coefficients that are far apart in memory. A client's local loop may keep its own copy in feature-major
order, w[jS + c], where they are contiguous. The stride S is C rounded up to whole SIMD vectors; the padding
is zero and stays zero.
"""

from __future__ import annotations

from typing import NamedTuple

from unpooled.kernels import plain_products as blocks
from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel, vectorised
from unpooled.kernels.rows import add_intercepts, sum_residuals

sparse_margins = vectorised(blocks.sparse_margins, "sparse_products")
sparse_adjoint = vectorised(blocks.sparse_adjoint, "sparse_products")


class FeatureMajorRows(NamedTuple):
    """Rows of a CSR matrix with ``n_columns`` features."""

    values: Array
    columns: Array
    starts: Array
    n_columns: int
    stride: int
    y: Array
    weight: Array

    @kernel
    def margins(self, batch: Array, w: Array, Z: Array) -> None:
        """Z[i, c] ← x_i·w_c + b_c for the rows i of the batch."""
        sparse_margins(self.values, self.columns, self.starts, batch, w, self.stride, Z)
        add_intercepts(w, self.stride * self.n_columns, Z)

    @kernel
    def adjoint(self, batch: Array, Z: Array, G: Array) -> None:
        """G_c ← Σ_i Z[i, c] x_i, and Σ_i Z[i, c] for the intercepts."""
        for q in range(G.size):
            G[q] = 0
        sparse_adjoint(self.values, self.columns, self.starts, batch, Z, G, self.stride)
        sum_residuals(Z, self.stride * self.n_columns, G)


def stride_of(n_outputs: int, itemsize: int) -> int:
    """The stride S: ``n_outputs`` rounded up to whole SIMD vectors of the host."""
    from unpooled.kernels.simd import width

    lanes = max(1, width() // itemsize)
    return -(-n_outputs // lanes) * lanes
