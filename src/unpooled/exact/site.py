"""One client's rows as its oracle works on them, dense or CSR, in NumPy and BLAS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from unpooled._validation import blocks, is_sparse
from unpooled.data.client_view import Client
from unpooled.kernels.arrays import Array, Float

FLAT = 1e-12  # of a value: a column whose other values are as near to it is constant


@dataclass(frozen=True, eq=False)
class Site:
    """Rows X (n, p), targets y (n,) and ``share`` (n,), the s_i/n_k whose sum over a whole client is one.

    Sums over rows are weighted with ``share``, so that Σ_k π_k of them is the mean over all rows. With an
    ``origin``, margins and sums are those of the rows x − origin; dense rows are then centred one by one, so
    that large means take no digits from small differences.
    """

    X: Any
    y: Float
    share: Float
    is_weighted: bool
    rest: Site | None = None  # the client's other rows, where these are a fold left out
    origin: Float | None = None

    @classmethod
    def of(cls, client: Client) -> Site:
        """The rows of a client; rows that are matrices are flattened."""
        X = client.X if is_sparse(client.X) else np.asarray(client.X).reshape(client.n_rows, -1)
        s = np.ones(client.n_rows) if client.sample_weight is None else client.sample_weight
        y = np.asarray(client.y, dtype=np.float64)
        return cls(X, y, np.asarray(s / client.n_rows), client.sample_weight is not None)

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.y)

    @cached_property
    def constant(self) -> Array:
        """Which columns (p,) have one value in all rows that count, up to rounding."""
        X, p = self.X, self.X.shape[1]
        if not self.share.all():
            X = X[self.share > 0.0]
        n, found = X.shape[0], np.zeros(p, dtype=bool)
        if n == 0:
            return ~found
        left = np.arange(p)
        if is_sparse(X):
            filled = np.bincount(X.indices[X.data != 0], minlength=p)
            found[filled == 0] = True
            left = np.flatnonzero(filled == n)
            X = X[:, left].toarray()
        first, at = np.asarray(X[0], dtype=np.float64), np.arange(X.shape[1])
        for part in (slice(0, 2), *blocks(n, max(p, 1))):  # two rows settle it for nearly all columns
            D = np.abs(np.asarray(X[part, at], dtype=np.float64) - first[at])
            at = at[(FLAT * np.abs(first[at]) >= D).all(axis=0)]
            if not at.size:
                break
        found[left[at]] = True
        return found

    def rows(self, chosen: Array) -> Site:
        """Some of the rows, with their shares as they were."""
        return Site(self.X[chosen], self.y[chosen], self.share[chosen], self.is_weighted)

    def margins(self, w: Float, n_outputs: int) -> Float:
        """Z = XW + b, shape (n, C), for a flat w: C times p coefficients, then perhaps C intercepts."""
        p = self.X.shape[1]
        W = w[: n_outputs * p].reshape(n_outputs, p).T
        Z = np.asarray(self.X @ W, dtype=np.float64)
        if self.origin is not None:
            Z = Z - self.origin @ W
        return Z + w[n_outputs * p :] if w.size > n_outputs * p else Z

    def pull_back(self, U: Float, intercept: bool) -> Float:
        """Σ_i share_i x_i U_i as a flat vector, with the intercepts' Σ_i share_i U_i behind it."""
        U = self.share[:, None] * U
        if self.origin is None:
            flat = np.asarray(self.X.T @ U, dtype=np.float64).T
        elif is_sparse(self.X):
            flat = np.asarray(self.X.T @ U).T - np.multiply.outer(U.sum(axis=0), self.origin)
        else:
            flat = np.zeros((U.shape[1], len(self.origin)))
            for part in blocks(self.n_rows, len(self.origin)):
                flat += U[part].T @ (self.X[part] - self.origin)
        return np.concatenate([flat.ravel(), U.sum(axis=0)]) if intercept else flat.ravel()

    def less(self, origin: Float) -> Site:
        """The same rows, less ``origin``."""
        return replace(self, origin=origin)

    def columns(self, chosen: Array) -> Any:
        """Columns of [X, 1] as they are stored; index p is the column of ones."""
        p = self.X.shape[1]
        of_X = chosen[chosen < p]
        A = self.X[:, of_X] if len(of_X) < p else self.X
        if len(of_X) == len(chosen):
            return A
        ones = np.ones((self.n_rows, len(chosen) - len(of_X)))
        if is_sparse(A):
            from scipy import sparse

            return sparse.hstack([A, sparse.csr_array(ones)], format="csr")
        return np.concatenate([A, ones], axis=1)

    def blocks_of(self, chosen: Array, width: int) -> Iterator[tuple[slice, Float]]:
        """The same, dense and less the origin, a block of rows at a time; ``width`` numbers come of a row."""
        A, shift = self.columns(chosen), self.shift(chosen)
        for part in blocks(self.n_rows, max(width, 1)):
            B = A[part].toarray() if is_sparse(A) else np.asarray(A[part], dtype=np.float64)
            yield part, B if shift is None else B - shift

    def shift(self, chosen: Array, center: Float | None = None) -> Float | None:
        """What is taken off these columns of [X, 1]: the origin, and ``center`` (less the origin) on top."""
        if self.origin is None:
            return center
        own = np.append(self.origin, 0.0)[chosen]
        return own if center is None else own + center

    def gram(self, chosen: Array, weight: Float, center: Float | None = None) -> Float:
        """Aᵀ diag(weight) A for the columns A of [X, 1], ``center`` taken off each row first; weight ≥ 0.

        ``chosen`` is sorted, so that the column of ones is the last.
        """
        root, A, shift = np.sqrt(weight)[:, None], self.columns(chosen), self.shift(chosen, center)
        if is_sparse(A):
            from scipy import sparse

            S: Any = sparse.csr_array(A.multiply(root))
            G = np.asarray((S.T @ S).toarray(), dtype=np.float64)
            if shift is None:
                return G
            moved = np.multiply.outer(A.T @ weight - 0.5 * weight.sum() * shift, shift)
            return np.asarray(G - moved - moved.T)
        total = np.zeros((len(chosen), len(chosen)))
        for part in blocks(self.n_rows, max(len(chosen), 1)):
            B = np.asarray(A[part], dtype=np.float64)
            B = (B if shift is None else B - shift) * root[part]
            total += B.T @ B
        return total

    def totals(self, weight: Float) -> Float:
        """Σ_i weight_i x_i."""
        sums = np.asarray(self.X.T @ weight, dtype=np.float64)
        return sums if self.origin is None else sums - weight.sum() * self.origin


def packed(H: Float) -> Float:
    """The upper triangle of a symmetric matrix, row by row: half the bytes on the wire."""
    return H[np.triu_indices(len(H))]


def unpacked(triangle: Float, size: int) -> Float:
    """The symmetric matrix of an upper triangle."""
    H = np.empty((size, size))
    rows, columns = np.triu_indices(size)
    H[rows, columns] = triangle
    H[columns, rows] = triangle
    return H
