"""Rows of a design matrix as records for compiled code: margins Xw and the adjoint Xᵀr of a minibatch.

The parameters are one flat vector: the coefficients output by output (p numbers for each of the C outputs),
followed by C intercepts if the problem has intercepts. A margin is z_c = x·w_c + b_c.
"""

from __future__ import annotations

from typing import NamedTuple

from unpooled.kernels import plain_products as blocks
from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel, method, vectorised

margins = method("margins", borrows=True)
adjoint = method("adjoint", borrows=True)
dense_margins = vectorised(blocks.margins)
dense_adjoint = vectorised(blocks.adjoint)


class DenseRows(NamedTuple):
    """Rows of a dense (N, p) array; matrix-valued rows are flattened."""

    X: Array
    y: Array
    weight: Array  # mean one within each client; empty for equal weights

    @kernel
    def margins(self, batch: Array, w: Array, Z: Array) -> None:
        """Z[i, c] ← x_i·w_c + b_c for the rows i of the batch."""
        dense_margins(self.X, batch, w, Z)
        add_intercepts(w, Z.shape[1] * self.X.shape[1], Z)

    @kernel
    def adjoint(self, batch: Array, Z: Array, G: Array) -> None:
        """G_c ← Σ_i Z[i, c] x_i, and Σ_i Z[i, c] for the intercepts."""
        dense_adjoint(self.X, batch, Z, G)
        sum_residuals(Z, Z.shape[1] * self.X.shape[1], G)


class SparseRows(NamedTuple):
    """Rows of a CSR matrix of shape (N, p)."""

    values: Array
    columns: Array
    starts: Array
    n_columns: int
    y: Array
    weight: Array

    @kernel
    def margins(self, batch: Array, w: Array, Z: Array) -> None:
        """Z[i, c] ← x_i·w_c + b_c for the rows i of the batch."""
        p, n_outputs = self.n_columns, Z.shape[1]
        for i in range(batch.size):
            for c in range(n_outputs):
                z = w.dtype.type(0)
                for q in range(self.starts[batch[i]], self.starts[batch[i] + 1]):
                    z += self.values[q] * w[c * p + self.columns[q]]
                Z[i, c] = z
        add_intercepts(w, n_outputs * p, Z)

    @kernel
    def adjoint(self, batch: Array, Z: Array, G: Array) -> None:
        """G_c ← Σ_i Z[i, c] x_i, and Σ_i Z[i, c] for the intercepts."""
        p, n_outputs = self.n_columns, Z.shape[1]
        G[:] = 0
        for i in range(batch.size):
            for c in range(n_outputs):
                z = Z[i, c]
                for q in range(self.starts[batch[i]], self.starts[batch[i] + 1]):
                    G[c * p + self.columns[q]] += z * self.values[q]
        sum_residuals(Z, n_outputs * p, G)


@kernel
def add_intercepts(w: Array, n_coefficients: int, Z: Array) -> None:
    """Z[:, c] += b_c if w holds intercepts after its coefficients."""
    if w.size > n_coefficients:
        for i in range(Z.shape[0]):
            for c in range(Z.shape[1]):
                Z[i, c] += w[n_coefficients + c]


@kernel
def sum_residuals(Z: Array, n_coefficients: int, G: Array) -> None:
    """Write the intercepts' gradients Σ_i Z[i, c] if G has entries for them."""
    if G.size > n_coefficients:
        for c in range(Z.shape[1]):
            total = Z.dtype.type(0)
            for i in range(Z.shape[0]):
                total += Z[i, c]
            G[n_coefficients + c] = total
