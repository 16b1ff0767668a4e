"""Data with a known truth: the paper's sparse and low-rank regressions, and a sparse classification.

Client k's rows are drawn from a stream keyed by (seed, k): they do not depend on how many clients there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from unpooled._validation import precision
from unpooled.data.federated import FederatedData

# The first key of a stream: what it is for. Equal seeds never share random numbers across these.
SPARSE, LOW_RANK, CLASSES, START = range(4)


def sparse_regression(
    seed: int,
    n_clients: int = 64,
    n_rows: int = 128,
    n_features: int = 1024,
    sparsity: int = 512,
    noise: float = 1.0,
    heterogeneity: float = 1.0,
    correlation: float = 0.5,
    dtype: DTypeLike = np.float64,
) -> FederatedData:
    """y = ⟨x, w*⟩ + noise·N(0, 1), w* = (1_s, 0), x = heterogeneity·δ_k + z; the defaults are the paper's.

    δ_k ~ N(0, I) shifts all rows of client k; z ~ N(0, Σ), Σ_ij = correlation^|i−j|.
    """
    _check(n_clients, n_rows, n_features=n_features)
    _check_sparse(sparsity, n_features, heterogeneity, correlation)
    _check_not_negative(noise=noise)
    truth = np.zeros(n_features)
    truth[:sparsity] = 1
    X, y = _empty(n_clients, n_rows, (n_features,), dtype)
    for rows, rng in _clients(seed, SPARSE, n_clients, n_rows):
        x = _shifted_rows(rng, n_rows, n_features, heterogeneity, correlation)
        y[rows] = x @ truth + noise * rng.standard_normal(n_rows)
        X[rows] = x
    return _federated(X, y, n_clients, n_rows, truth)


def low_rank_regression(
    seed: int,
    n_clients: int = 64,
    n_rows: int = 128,
    shape: tuple[int, int] = (32, 32),
    rank: int = 16,
    noise: float = 1.0,
    dtype: DTypeLike = np.float64,
) -> FederatedData:
    """y = ⟨X, W*⟩ + noise·N(0, 1), W* = diag(1_rank, 0), X = Z_k + A; the defaults are the paper's.

    Z_k, one for each client, and A, one for each row, have independent N(0, 1) entries.
    """
    p1, p2 = shape
    _check(n_clients, n_rows, p1=p1, p2=p2)
    if not 0 <= rank <= min(shape):
        raise ValueError(f"rank must lie between 0 and {min(shape)}, got {rank}")
    _check_not_negative(noise=noise)
    truth = np.zeros(shape)
    np.fill_diagonal(truth[:rank], 1)
    X, y = _empty(n_clients, n_rows, (p1, p2), dtype)
    for rows, rng in _clients(seed, LOW_RANK, n_clients, n_rows):
        x = rng.standard_normal((p1, p2)) + rng.standard_normal((n_rows, p1, p2))
        y[rows] = np.einsum("nij,ij->n", x, truth) + noise * rng.standard_normal(n_rows)
        X[rows] = x
    return _federated(X, y, n_clients, n_rows, truth)


def sparse_classification(
    seed: int,
    n_clients: int = 64,
    n_rows: int = 128,
    n_features: int = 256,
    n_classes: int = 2,
    sparsity: int = 16,
    signal: float = 2.0,
    heterogeneity: float = 1.0,
    correlation: float = 0.5,
    dtype: DTypeLike = np.float64,
) -> FederatedData:
    """P(y = c | x) ∝ exp(⟨x, W*_c⟩), y in 0 … C−1, with x as in `sparse_regression`.

    The first ``sparsity`` features each speak for one class, in C equal blocks, with a coefficient of
    signal/√sparsity. The truth is W* (p, C) with ``sparsity`` nonzeros, or for two classes W*_1 − W*_0 (p,).
    Heterogeneity makes the mix of classes differ between the clients.
    """
    _check(n_clients, n_rows, n_features=n_features)
    _check_sparse(sparsity, n_features, heterogeneity, correlation)
    _check_not_negative(signal=signal)
    if n_classes < 2:
        raise ValueError(f"n_classes must be at least 2, got {n_classes}")
    W = np.zeros((n_features, n_classes))
    support = np.arange(sparsity)
    W[support, support * n_classes // max(sparsity, 1)] = signal / np.sqrt(max(sparsity, 1))
    X, y = _empty(n_clients, n_rows, (n_features,), dtype)
    for rows, rng in _clients(seed, CLASSES, n_clients, n_rows):
        x = _shifted_rows(rng, n_rows, n_features, heterogeneity, correlation)
        # the largest of the scores plus Gumbel noise has the softmax of the scores as its distribution
        y[rows] = np.argmax(x @ W + rng.gumbel(size=(n_rows, n_classes)), axis=1)
        X[rows] = x
    return _federated(X, y, n_clients, n_rows, W[:, 1] - W[:, 0] if n_classes == 2 else W)


def gaussian_start(data: FederatedData, seed: int, outputs: int | None = None) -> NDArray[Any]:
    """w_0 with N(0, 1) entries, of the shape of a row or (p, outputs), independent of the data's draws."""
    shape = data.row_shape if outputs is None else (*data.row_shape, outputs)
    return _stream(seed, START).standard_normal(shape).astype(data.dtype, copy=False)


def _stream(seed: int, *key: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def _clients(
    seed: int, purpose: int, n_clients: int, n_rows: int
) -> Iterator[tuple[slice, np.random.Generator]]:
    """Each client's rows and its random stream."""
    for k in range(n_clients):
        yield slice(k * n_rows, (k + 1) * n_rows), _stream(seed, purpose, k)


def _shifted_rows(
    rng: np.random.Generator, n: int, p: int, heterogeneity: float, correlation: float
) -> NDArray[np.float64]:
    """n rows δ + z: z_1 = e_1, z_j = ρ z_{j−1} + √(1−ρ²) e_j has Cov(z_i, z_j) = ρ^|i−j|."""
    shift = heterogeneity * rng.standard_normal(p)
    z = rng.standard_normal((p, n))  # one feature per row of memory: the recursion runs along the features
    z[1:] *= np.sqrt(1 - correlation**2)
    for j in range(1, p):
        z[j] += correlation * z[j - 1]
    return z.T + shift


def _empty(n_clients: int, n_rows: int, row_shape: tuple[int, ...], dtype: DTypeLike) -> tuple[Any, Any]:
    dtype = precision(dtype)
    return np.empty((n_clients * n_rows, *row_shape), dtype), np.empty(n_clients * n_rows, dtype)


def _federated(X: Any, y: Any, n_clients: int, n_rows: int, truth: NDArray[Any]) -> FederatedData:
    clients = np.repeat(np.arange(n_clients), n_rows)
    return FederatedData.from_arrays(X, y, clients, truth=truth.astype(X.dtype, copy=False))


def _check(n_clients: int, n_rows: int, **counts: int) -> None:
    for name, value in {"n_clients": n_clients, "n_rows": n_rows, **counts}.items():
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")


def _check_sparse(sparsity: int, n_features: int, heterogeneity: float, correlation: float) -> None:
    if not 0 <= sparsity <= n_features:
        raise ValueError(f"sparsity must lie between 0 and n_features = {n_features}, got {sparsity}")
    if not -1 < correlation < 1:
        raise ValueError(f"correlation must lie between -1 and 1, got {correlation}")
    _check_not_negative(heterogeneity=heterogeneity)


def _check_not_negative(**values: float) -> None:
    for name, value in values.items():
        if not (np.isfinite(value) and value >= 0):
            raise ValueError(f"{name} must be finite and not negative, got {value}")
