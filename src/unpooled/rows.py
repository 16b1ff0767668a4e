"""Rows of a design matrix as records for compiled code: margins Xw and the adjoint Xᵀr on a minibatch.

Parameters are one flat vector: the coefficients output by output (p numbers for each of the C outputs),
then, where the problem has intercepts, C of them. A margin is z_c = x·w_c + b_c.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from unpooled.arrays import Array
from unpooled.kernel import kernel, method

if TYPE_CHECKING:
    from unpooled.data import FederatedData

margins = method("margins")
adjoint = method("adjoint")


class DenseRows(NamedTuple):
    """Rows of a dense (N, p) array; rows that are matrices are flattened."""

    X: Array
    y: Array
    weight: Array  # of mean one inside each client, or empty

    @kernel
    def margins(self, batch: Array, w: Array, Z: Array) -> None:
        """Z[i, c] ← x_i·w_c + b_c for the rows i of the batch."""
        X, p, n_outputs, b = self.X, self.X.shape[1], Z.shape[1], batch.size
        zero = w.dtype.type(0)
        for c in range(n_outputs):
            w_c = w[c * p : (c + 1) * p]
            i = 0
            # Five rows at a time: w_c is read once for all of them and five sums run side by side.
            while i + 5 <= b:
                x0, x1, x2 = X[batch[i]], X[batch[i + 1]], X[batch[i + 2]]
                x3, x4 = X[batch[i + 3]], X[batch[i + 4]]
                z0, z1, z2, z3, z4 = zero, zero, zero, zero, zero
                for j in range(p):
                    z0 += x0[j] * w_c[j]
                    z1 += x1[j] * w_c[j]
                    z2 += x2[j] * w_c[j]
                    z3 += x3[j] * w_c[j]
                    z4 += x4[j] * w_c[j]
                Z[i, c], Z[i + 1, c], Z[i + 2, c], Z[i + 3, c], Z[i + 4, c] = z0, z1, z2, z3, z4
                i += 5
            while i < b:
                x0 = X[batch[i]]
                z0 = zero
                for j in range(p):
                    z0 += x0[j] * w_c[j]
                Z[i, c] = z0
                i += 1
        add_intercepts(w, n_outputs * p, Z)

    @kernel
    def adjoint(self, batch: Array, Z: Array, G: Array) -> None:
        """G_c ← Σ_i Z[i, c] x_i, and the intercepts' part Σ_i Z[i, c]."""
        X, p, n_outputs, b = self.X, self.X.shape[1], Z.shape[1], batch.size
        for c in range(n_outputs):
            G_c = G[c * p : (c + 1) * p]
            G_c[:] = 0
            i = 0
            while i + 5 <= b:
                x0, x1, x2 = X[batch[i]], X[batch[i + 1]], X[batch[i + 2]]
                x3, x4 = X[batch[i + 3]], X[batch[i + 4]]
                z0, z1, z2, z3, z4 = Z[i, c], Z[i + 1, c], Z[i + 2, c], Z[i + 3, c], Z[i + 4, c]
                for j in range(p):
                    G_c[j] += z0 * x0[j] + z1 * x1[j] + z2 * x2[j] + z3 * x3[j] + z4 * x4[j]
                i += 5
            while i < b:
                x0 = X[batch[i]]
                z0 = Z[i, c]
                for j in range(p):
                    G_c[j] += z0 * x0[j]
                i += 1
        sum_residuals(Z, n_outputs * p, G)


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
        """G_c ← Σ_i Z[i, c] x_i, and the intercepts' part Σ_i Z[i, c]."""
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
    """Z[:, c] += b_c where w carries intercepts behind its coefficients."""
    if w.size > n_coefficients:
        for i in range(Z.shape[0]):
            for c in range(Z.shape[1]):
                Z[i, c] += w[n_coefficients + c]


@kernel
def sum_residuals(Z: Array, n_coefficients: int, G: Array) -> None:
    """The intercepts' gradients Σ_i Z[i, c], where G has room for them."""
    if G.size > n_coefficients:
        for c in range(Z.shape[1]):
            total = Z.dtype.type(0)
            for i in range(Z.shape[0]):
                total += Z[i, c]
            G[n_coefficients + c] = total


def rows_of(data: FederatedData) -> DenseRows | SparseRows:
    """The record of all rows of ``data``, without a copy."""
    weight = np.empty(0, data.X.dtype) if data.sample_weight is None else data.sample_weight
    weight = np.asarray(weight, dtype=data.X.dtype)
    if data.is_sparse:
        X = data.X
        return SparseRows(X.data, X.indices, X.indptr, int(X.shape[1]), data.y, weight)
    return DenseRows(np.asarray(data.X).reshape(data.n_rows, -1), data.y, weight)
