"""Federated data in one piece of memory: the rows of all clients, sorted by client, with offsets.

Client k of K owns rows ``offsets[k]:offsets[k + 1]``, so a client is a view and a compiled loop over
clients needs no list of arrays. The objective is Σ_k π_k L_k(w) with L_k(w) = (1/n_k) Σ_i s_i ℓ(w; x_i, y_i).
"""

from __future__ import annotations

import functools
import hashlib
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from unpooled import _validation as validation
from unpooled._validation import ClientId, Names, Rows
from unpooled._wording import counted
from unpooled.data.client_view import Client, check_alike, read_client, row_slice, stack
from unpooled.data.in_process import InProcess
from unpooled.data.parquet import Source, mapped

Weights = str | ArrayLike


@dataclass(frozen=True, eq=False, repr=False)
class FederatedData(InProcess):
    """N rows of K clients. Made by `from_arrays`, `from_clients` or `from_frame`, which check them.

    X (N, p) or (N, p1, p2), C-contiguous, or a CSR array (N, p); float32 or float64, and y (N,) with it.
    ``sample_weight`` (N,) has mean one inside each client; ``weights`` (K,) are the π_k and sum to one;
    ``totals`` (K,) are the sums of the sample weights as they were given (n_k without any).
    ``truth`` holds the coefficients that generated synthetic data; ``has_missing`` says whether X has NaN.

    Arrays that already have this form are shared with the caller, not copied: they are not to be changed
    afterwards, for what is found out about them is found once. X may be memory-mapped
    (``np.load(…, mmap_mode="r")``), and is never loaded whole unless rows are picked from it (`split`).
    """

    X: Any
    y: NDArray[Any]
    offsets: NDArray[np.int64]
    ids: tuple[ClientId, ...]
    sample_weight: NDArray[np.float64] | None
    weights: NDArray[np.float64]
    totals: NDArray[np.float64]
    truth: NDArray[Any] | None = None
    feature_names: Names = None
    has_missing: bool = False

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: Any,
        clients: Any,
        sample_weight: Any = None,
        weights: Weights = "samples",
        truth: ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        allow_missing: bool = False,
    ) -> FederatedData:
        """Rows in any order, with one client id (integer or string) per row.

        ``weights``: "samples" (π_k ∝ the sum of the client's sample weights, n_k without any), "uniform",
        or K positive numbers in the order of the sorted ids. ``allow_missing`` accepts NaN in X, for
        ``preprocessing.prepare`` to deal with; nothing else takes such data.
        """
        X, names = validation.as_features(X, "X", None if feature_names is None else tuple(feature_names))
        rows = validation.sort_rows(clients)
        if len(rows) != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows but clients has {len(rows)}")
        y = validation.as_numbers(y, "y", rows)
        s = None if sample_weight is None else validation.as_numbers(sample_weight, "sample_weight", rows)
        X = validation.gather(X, rows.order)
        return cls._checked(rows, X, y, s, weights, truth, names, allow_missing)

    @classmethod
    def from_clients(
        cls,
        clients: Mapping[Any, tuple[Any, ...]] | Iterable[tuple[Any, ...]],
        ids: Iterable[Any] | None = None,
        weights: Weights = "samples",
        truth: ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        allow_missing: bool = False,
    ) -> FederatedData:
        """One ``(X, y)`` or ``(X, y, sample_weight)`` per client, as a list or as a mapping from its id.

        K numbers given as ``weights`` follow the order of ``clients``; ``allow_missing`` as in `from_arrays`.
        """
        if isinstance(clients, Mapping):
            if ids is not None:
                raise ValueError("ids are the keys of the mapping of clients: do not give them again")
            ids, clients = clients.keys(), clients.values()
        given = list(clients)
        labels = list(range(len(given)) if ids is None else ids)
        if not given:
            raise ValueError("the data has no clients")
        if len(labels) != len(given):
            raise ValueError(f"{len(labels)} ids for {len(given)} clients")
        known = validation.sorted_ids(labels, "client")
        if len(known) < len(given):
            raise ValueError(f"client id {next(x for x in labels if labels.count(x) > 1)!r} is given twice")
        order = sorted(range(len(given)), key=labels.__getitem__)
        if not isinstance(weights, str) and np.shape(weights) == (len(given),):
            weights = np.asarray(weights)[order]

        names = None if feature_names is None else tuple(feature_names)
        parts: list[Client] = []
        for name, k in zip(known, order, strict=True):
            part, names = read_client(name, given[k], names)
            parts.append(part)
            check_alike(parts[0], part)
        offsets = np.cumsum([0] + [part.n_rows for part in parts], dtype=np.int64)
        X = stack([part.X for part in parts], offsets)
        y = np.concatenate([part.y for part in parts])
        weighted = [part.sample_weight for part in parts if part.sample_weight is not None]
        s = np.concatenate(weighted) if weighted else None
        rows = Rows(known, offsets, within_client=True)
        return cls._checked(rows, X, y, s, weights, truth, names, allow_missing)

    @classmethod
    def from_frame(
        cls,
        df: Any,
        target: Any,
        client: Any,
        features: Sequence[Any] | None = None,
        sample_weight: Any = None,
        weights: Weights = "samples",
        allow_missing: bool = False,
    ) -> FederatedData:
        """Columns of a pandas or polars frame; ``features`` are all columns not named otherwise.

        ``target``, ``client`` and ``sample_weight`` name columns; ``allow_missing`` as in `from_arrays`.
        Columns of categories become numbers with ``preprocessing.encode``.
        """
        available = list(df.columns)
        validation.refuse_single("features", "columns", features)
        special = [target, client] + ([] if sample_weight is None else [sample_weight])
        for name in special:
            if name not in available:
                raise ValueError(f"the frame has no column {name!r}; it has {validation.listing(available)}")
        features = [name for name in available if name not in special] if features is None else list(features)
        for name in features:
            if name not in available:
                raise ValueError(f"the frame has no feature {name!r}{validation.closest(name, available)}")
            if name == target:
                raise ValueError(f"the target {target!r} is also among the features")
            if features.count(name) > 1 or available.count(name) > 1:
                raise ValueError(f"the feature {name!r} occurs twice")
        if not features:
            raise ValueError(f"the frame has no features besides {validation.listing(special)}")
        values = {name: df[name].to_numpy() for name in features}
        dtypes = {name: validation.float_dtype(column.dtype) for name, column in values.items()}
        refused = [f"{name!r} ({values[name].dtype})" for name in features if dtypes[name] is None]
        if refused:
            raise TypeError(
                f"features must be numeric; encode or leave out {', '.join(refused)}{validation.ENCODE}"
            )

        rows = validation.sort_rows(df[client].to_numpy())
        X = np.empty((len(rows), len(features)), np.result_type(*dtypes.values()))
        for j, name in enumerate(features):
            X[:, j] = values.pop(name)[... if rows.order is None else rows.order]
        y = validation.as_numbers(df[target].to_numpy(), "y", rows)
        s = None
        if sample_weight is not None:
            s = validation.as_numbers(df[sample_weight].to_numpy(), "sample_weight", rows)
        return cls._checked(rows, X, y, s, weights, None, tuple(map(str, features)), allow_missing)

    @classmethod
    def from_parquet(
        cls,
        source: Source,
        target: str,
        *,
        cache: str | os.PathLike[str],
        features: Sequence[str] | None = None,
        client: str | None = None,
        sample_weight: str | None = None,
        weights: Weights = "samples",
        dtype: DTypeLike | None = None,
    ) -> FederatedData:
        """Parquet or Arrow (Feather) files that need not fit into memory: a folder of them, some, or one.

        Every file is a client, named after the file; or ``client`` names the column that tells. ``features``
        are all columns not named otherwise, the same in every file. The rows are written once to a folder in
        ``cache``, as large as X uncompressed, and mapped from there: a run reads the pages it needs. Needs
        pyarrow (the extra "data"). ``dtype`` "float32" halves the size; None keeps the columns' precision.
        """
        validation.refuse_single("features", "columns", features)
        rows, X, y, s, names = mapped(source, target, features, client, sample_weight, cache, dtype)
        return cls._checked(rows, X, y, s, weights, None, names)

    @classmethod
    def _checked(
        cls,
        rows: Rows,
        X: Any,
        y: Any,
        s: Any,
        weights: Weights,
        truth: ArrayLike | None,
        names: Names,
        allow_missing: bool = False,
    ) -> FederatedData:
        """Sorted rows of the right shapes: check every value, normalise the weights."""
        has_missing = validation.check_features(X, rows, names, allow_missing)
        y = validation.check_numbers(y, X.dtype, "y", rows)
        totals = np.diff(rows.offsets).astype(np.float64)
        if s is not None:
            s = validation.check_numbers(s, np.dtype(np.float64), "sample_weight", rows)
            if (s < 0).any():
                i = int(np.argmax(s < 0))
                raise ValueError(f"sample_weight must not be negative: {rows.name(i)} holds {s[i]}")
            s, totals = validation.normalise_rows(s, rows.offsets, rows.ids)
        pi = validation.client_weights(weights, totals, rows.ids)
        if truth is not None:
            truth = np.asarray(truth)
            if truth.shape[: X.ndim - 1] != X.shape[1:]:
                raise ValueError(f"truth has shape {truth.shape}, but a row of X has shape {X.shape[1:]}")
        return cls(X, y, rows.offsets, rows.ids, s, pi, totals, truth, names, has_missing)

    @property
    def n_clients(self) -> int:
        """K."""
        return len(self.ids)

    @property
    def n_rows(self) -> int:
        """N = Σ n_k."""
        return int(self.offsets[-1])

    @property
    def row_shape(self) -> tuple[int, ...]:
        """(p,), or (p1, p2) for trace regression."""
        return tuple(self.X.shape[1:])

    @property
    def n_features(self) -> int:
        """p, or p1·p2."""
        return math.prod(self.row_shape)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """n_k, shape (K,)."""
        return np.diff(self.offsets)

    @property
    def is_sparse(self) -> bool:
        """Whether X is a CSR array."""
        return validation.is_sparse(self.X)

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64."""
        return self.y.dtype

    @property
    def row_weights(self) -> NDArray[np.float64]:
        """π_k s_i / n_k, shape (N,): each row's share of the objective; sums to one."""
        share = np.repeat(self.weights / self.sizes, self.sizes)
        return share if self.sample_weight is None else share * self.sample_weight

    def __len__(self) -> int:
        return self.n_clients

    def __iter__(self) -> Iterator[Client]:
        return map(self._client, range(self.n_clients))

    def __repr__(self) -> str:
        shape, sizes = "×".join(map(str, self.row_shape)), self.sizes
        return (
            f"FederatedData({counted(self.n_clients, 'client')}, {counted(self.n_rows, 'row')} × {shape} "
            f"{'feature' if self.n_features == 1 else 'features'}, "
            f"{self.dtype}{' CSR' if self.is_sparse else ''}, n_k {sizes.min()}–{sizes.max()})"
        )

    @functools.cached_property
    def _positions(self) -> dict[ClientId, int]:
        return {name: k for k, name in enumerate(self.ids)}

    def index(self, id: ClientId) -> int:
        """The position k of a client."""
        try:
            return self._positions[id]
        except (KeyError, TypeError):
            hint = validation.closest(id, self.ids)
            raise ValueError(f"there is no client {id!r} among the {self.n_clients}{hint}") from None

    def client(self, id: ClientId) -> Client:
        """One client's rows, without a copy."""
        return self._client(self.index(id))

    def _client(self, k: int) -> Client:
        rows = slice(int(self.offsets[k]), int(self.offsets[k + 1]))
        s = None if self.sample_weight is None else self.sample_weight[rows]
        return Client(self.ids[k], row_slice(self.X, rows), self.y[rows], s)

    def subset(self, ids: Iterable[ClientId]) -> FederatedData:
        """These clients only, in sorted order, with their π_k in proportion; views if they are neighbours."""
        validation.refuse_single("ids", "clients", ids)
        chosen = sorted({self.index(name) for name in ids})
        if not chosen:
            raise ValueError("a subset needs at least one client")
        starts, stops = self.offsets[chosen], self.offsets[1:][chosen]
        if chosen[-1] - chosen[0] + 1 == len(chosen):
            return self._select(slice(int(starts[0]), int(stops[-1])), chosen, stops - starts)
        rows = np.concatenate([np.arange(a, b) for a, b in zip(starts, stops, strict=True)])
        return self._select(rows, chosen, stops - starts)

    def _select(
        self, rows: slice | NDArray[np.int64], chosen: Sequence[int], sizes: NDArray[Any]
    ) -> FederatedData:
        """Some rows, ``sizes[j]`` of them from client ``chosen[j]``; its total shrinks with its rows."""
        ids = tuple(self.ids[k] for k in chosen)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        kept, s = sizes.astype(np.float64), None
        if self.sample_weight is not None:
            s, kept = validation.normalise_rows(self.sample_weight[rows], offsets, ids)
        k = np.asarray(chosen)
        totals = self.totals[k] * (kept / self.sizes[k])
        # π_k that count samples go on counting them; π_k chosen otherwise stay in proportion
        counting = np.allclose(self.weights, self.totals / self.totals.sum(), rtol=1e-12, atol=0)
        pi = validation.client_weights(totals if counting else self.weights[k], totals, ids)
        X = row_slice(self.X, rows) if isinstance(rows, slice) else self.X[rows]
        return replace(
            self, X=X, y=self.y[rows], offsets=offsets, ids=ids, sample_weight=s, weights=pi, totals=totals
        )

    def astype(self, dtype: DTypeLike) -> Self:
        """X and y in float32 or float64."""
        dtype = validation.precision(dtype)
        if dtype == self.dtype:
            return self
        validation.refuse_copy(self.X, f"it is {self.dtype}, not {dtype}")
        rows = Rows(self.ids, self.offsets, within_client=True)
        with np.errstate(over="ignore"):
            X = self.X.astype(dtype)
        validation.check_features(X, rows, self.feature_names, self.has_missing)
        return replace(self, X=X, y=validation.check_numbers(self.y, dtype, "y", rows))

    def with_weights(self, weights: Weights) -> Self:
        """The same rows with other π_k: "samples", "uniform", or K positive numbers in the order of ids."""
        return replace(self, weights=validation.client_weights(weights, self.totals, self.ids))

    def split(self, test_fraction: float, seed: int) -> tuple[FederatedData, FederatedData]:
        """Split each client's rows at random into (train, test).

        A client of n_k ≥ 2 rows gives round(test_fraction · n_k) of them to the test, at least one and at
        most n_k − 1; a client of one row is left out of the test. A client's split depends on the seed and
        its id, not on the other clients.
        """
        if not 0 < test_fraction < 1:
            raise ValueError(f"test_fraction must lie between 0 and 1, got {test_fraction}")
        sizes = self.sizes
        n_test = np.minimum(sizes - 1, np.maximum(1, np.rint(test_fraction * sizes).astype(np.int64)))
        if not n_test.any():
            raise ValueError("no client has two rows: there is nothing to split")
        in_test = np.zeros(self.n_rows, dtype=bool)
        for name, start, n, m in zip(self.ids, self.offsets[:-1], sizes, n_test, strict=True):
            key = int.from_bytes(hashlib.blake2b(repr(name).encode(), digest_size=8).digest())
            in_test[start + np.random.default_rng([seed, key]).permutation(n)[:m]] = True
        tested = np.flatnonzero(n_test)
        train = self._select(np.flatnonzero(~in_test), range(self.n_clients), sizes - n_test)
        return train, self._select(np.flatnonzero(in_test), tested.tolist(), n_test[tested])

    def fingerprint(self) -> str:
        """A short digest of ids, shapes, weights and every value: a resumed run must see the same one."""
        return self._digest

    @functools.cached_property
    def _digest(self) -> str:
        arrays = [self.X.data, self.X.indices, self.X.indptr] if self.is_sparse else [self.X]
        arrays += [self.y, self.offsets, self.weights]
        arrays += [] if self.sample_weight is None else [self.sample_weight]
        header = (self.ids, self.X.shape, [(a.shape, a.dtype.str) for a in arrays])
        digest = hashlib.blake2b(repr(header).encode(), digest_size=8)
        for array in arrays:
            digest.update(array)  # reads the array's own memory
        return digest.hexdigest()
