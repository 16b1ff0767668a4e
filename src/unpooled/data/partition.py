"""Ways to cut pooled rows into clients: each function gives one client id per row.

For experiments; data that comes from real clients brings its own ids.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unpooled._validation import as_array, closest, is_sparse


def iid(n_rows: int, n_clients: int, seed: int) -> NDArray[np.int64]:
    """Ids 0 … K−1 at random, with sizes n_k that differ by at most one."""
    _check_counts(n_rows, n_clients, 1)
    return np.random.default_rng(seed).permutation(np.arange(n_rows) % n_clients).astype(np.int64)


def dirichlet(
    labels: ArrayLike, n_clients: int, concentration: float, seed: int, min_rows: int = 1
) -> NDArray[np.int64]:
    """Label skew: the rows of class c go to the clients in proportions q_c ~ Dirichlet(concentration·1_K).

    A small concentration gives each class to few clients, a large one to all alike. A client left with
    fewer than ``min_rows`` is filled up with random rows of the largest.
    """
    classes, codes = np.unique(np.asarray(labels), return_inverse=True)
    if codes.ndim != 1:
        raise ValueError(f"labels must have one dimension, got shape {codes.shape}")
    if not (np.isfinite(concentration) and concentration > 0):
        raise ValueError(f"concentration must be positive, got {concentration}")
    _check_counts(len(codes), n_clients, min_rows)
    rng = np.random.default_rng(seed)
    clients = np.empty(len(codes), dtype=np.int64)
    for c in range(len(classes)):
        rows = rng.permutation(np.flatnonzero(codes == c))
        proportions = rng.dirichlet(np.full(n_clients, float(concentration)))
        cuts = np.rint(np.cumsum(proportions)[:-1] * len(rows)).astype(np.int64)
        for k, part in enumerate(np.split(rows, cuts)):
            clients[part] = k
    sizes = np.bincount(clients, minlength=n_clients)
    while sizes.min() < min_rows:
        k, donor = int(np.argmin(sizes)), int(np.argmax(sizes))
        moved = min(min_rows - sizes[k], sizes[donor] - min_rows)
        clients[rng.choice(np.flatnonzero(clients == donor), size=moved, replace=False)] = k
        sizes[k] += moved
        sizes[donor] -= moved
    return clients


def by_column(X: Any, column: Any) -> NDArray[Any]:
    """The values of one column, as client ids: a name for a frame, an index for an array.

    The column stays in X; leave it out of the features if it should not be one.
    """
    if hasattr(X, "columns"):
        if column not in list(X.columns):
            raise ValueError(f"the frame has no column {column!r}{closest(column, X.columns)}")
        return np.asarray(X[column].to_numpy())
    if not isinstance(column, int | np.integer):
        raise TypeError(f"the column of an array is named by its index, got {column!r}")
    X = as_array(X)
    if X.ndim != 2:
        raise ValueError(f"X must have shape (rows, features), got {X.shape}")
    if not -X.shape[1] <= column < X.shape[1]:
        raise ValueError(f"there is no column {column}: X has {X.shape[1]}")
    return np.asarray(X[:, [column]].toarray()[:, 0] if is_sparse(X) else X[:, column])


def _check_counts(n_rows: int, n_clients: int, min_rows: int) -> None:
    if n_clients < 1 or min_rows < 1:
        raise ValueError(f"n_clients and min_rows must be at least 1, got {n_clients} and {min_rows}")
    if n_clients * min_rows > n_rows:
        raise ValueError(f"{n_rows} rows cannot give {n_clients} clients {min_rows} each")
