"""One client's rows: a view of them, and how clients given one by one are read and stacked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpooled import _validation as validation
from unpooled._validation import ClientId, Names, Rows


@dataclass(frozen=True, eq=False)
class Client:
    """One client's rows: views of X (n_k, …), y (n_k,) and sample_weight (n_k,), or None for equal ones."""

    id: ClientId
    X: Any
    y: NDArray[Any]
    sample_weight: NDArray[np.float64] | None

    @property
    def rows(self) -> tuple[Any, NDArray[Any], NDArray[np.float64] | None]:
        """(X, y, sample_weight), as a loss takes them."""
        return self.X, self.y, self.sample_weight

    @property
    def n_rows(self) -> int:
        """n_k."""
        return len(self.y)


def row_slice(X: Any, rows: slice) -> Any:
    """X[rows] without a copy, also for CSR, whose own slicing makes one."""
    if not validation.is_sparse(X):
        return X[rows]
    from scipy import sparse

    pointers = X.indptr[rows.start : rows.stop + 1]
    entries = slice(int(pointers[0]), int(pointers[-1]))
    shape = (rows.stop - rows.start, X.shape[1])
    return sparse.csr_array(
        (X.data[entries], X.indices[entries], pointers - pointers[0]), shape=shape, copy=False
    )


def read_client(name: ClientId, part: Any, names: Names) -> tuple[Client, Names]:
    """One client as the caller gave it, its columns checked but not yet cast."""
    if not isinstance(part, tuple | list) or len(part) not in (2, 3):
        raise TypeError(f"client {name!r} must be (X, y) or (X, y, sample_weight), got {type(part).__name__}")
    X, names = validation.as_features(part[0], f"X of client {name!r}", names)
    if X.shape[0] == 0:
        raise ValueError(f"client {name!r} has no rows")
    rows = Rows((name,), np.array([0, X.shape[0]]), within_client=True)
    y = validation.as_numbers(part[1], "y", rows)
    weighted = len(part) == 3 and part[2] is not None
    return Client(
        name, X, y, validation.as_numbers(part[2], "sample_weight", rows) if weighted else None
    ), names


def check_alike(first: Client, other: Client) -> None:
    """Two clients must agree in the shape and storage of a row and in having sample weights."""
    pair = f"client {first.id!r} has {{}} but client {other.id!r} has {{}}"
    if validation.is_sparse(first.X) != validation.is_sparse(other.X):
        kinds = ["a sparse X" if validation.is_sparse(c.X) else "a dense X" for c in (first, other)]
        raise TypeError(pair.format(*kinds))
    if first.X.shape[1:] != other.X.shape[1:]:
        counts = [f"{'×'.join(map(str, c.X.shape[1:]))} columns" for c in (first, other)]
        raise ValueError(pair.format(*counts))
    if (first.sample_weight is None) != (other.sample_weight is None):
        raise ValueError(
            pair.format(*["no sample weights" if c.sample_weight is None else "some" for c in (first, other)])
        )


def stack(parts: list[Any], offsets: NDArray[np.int64]) -> Any:
    """The clients' X in one array, each copied once."""
    dtype = np.result_type(*(validation.float_dtype(X.dtype) for X in parts))
    if validation.is_sparse(parts[0]):
        from scipy import sparse

        return sparse.vstack(parts, format="csr", dtype=dtype)
    out = np.empty((offsets[-1], *parts[0].shape[1:]), dtype)
    for X, start, stop in zip(parts, offsets[:-1], offsets[1:], strict=True):
        out[start:stop] = X
    return out
