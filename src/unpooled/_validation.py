"""What federated data must satisfy, and errors that name the client, the row and the column that do not."""

from __future__ import annotations

import difflib
import math
import numbers
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

ClientId = int | str
Names = tuple[str, ...] | None
ENCODE = ": preprocessing.encode makes 0/1 columns of categories, the same at every client"
BLOCK = 1 << 17  # numbers looked at in one go: large enough to be fast, small enough to be no copy of X


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows sorted by client: client ``ids[k]`` owns rows ``offsets[k]:offsets[k + 1]``.

    Row i was row ``order[i]`` of the caller's array (None: row i); ``within_client`` counts from the
    client's first row instead, for a caller who gave one array per client.
    """

    ids: tuple[ClientId, ...]
    offsets: NDArray[np.int64]
    order: NDArray[np.intp] | None = None
    within_client: bool = False

    def __len__(self) -> int:
        return int(self.offsets[-1])

    def name(self, i: int) -> str:
        """The client of sorted row ``i`` and the number the caller knows that row by."""
        k = int(np.searchsorted(self.offsets, i, side="right")) - 1
        row = i - self.offsets[k] if self.within_client else i if self.order is None else self.order[i]
        return f"client {self.ids[k]!r}, row {row}"


def is_number(value: Any) -> bool:
    """Whether a value is a real number (True and False are not)."""
    return isinstance(value, Real) and not isinstance(value, bool)


def sort_rows(clients: Any) -> Rows:
    """Group rows by client id, keeping their order inside a client; ``order`` is None if they were sorted."""
    ids, codes = _factorise(np.asarray(clients) if hasattr(clients, "dtype") else clients)
    if not ids:
        raise ValueError("the data has no rows")
    order = None if np.all(codes[:-1] <= codes[1:]) else np.argsort(codes, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(ids)))]).astype(np.int64)
    return Rows(ids, offsets, order)


def _factorise(clients: Any) -> tuple[tuple[ClientId, ...], NDArray[np.intp]]:
    """The sorted distinct ids and each row's position among them."""
    if isinstance(clients, np.ndarray):
        if clients.ndim != 1:
            raise ValueError(f"clients must hold one id per row, got an array of shape {clients.shape}")
        if clients.dtype.kind in "ui":
            distinct, codes = np.unique(clients, return_inverse=True)
            return tuple(distinct.tolist()), codes
    values = clients.tolist() if isinstance(clients, np.ndarray) else list(clients)
    ids = sorted_ids(values, "row")
    position = {name: k for k, name in enumerate(ids)}
    return ids, np.fromiter((position[value] for value in values), np.intp, len(values))


def sorted_ids(values: Iterable[Any], where: str) -> tuple[ClientId, ...]:
    """The distinct ids in order: all integers (3.0 counts as 3) or all strings; ``where`` says of what."""
    first: dict[type, int] = {}
    distinct: set[Any] = set()
    for i, value in enumerate(values):
        if isinstance(value, str):
            kind: type = str
            value = str(value)
        elif isinstance(value, numbers.Integral) or (isinstance(value, float) and value.is_integer()):
            kind, value = int, int(value)  # so that np.int64(3) and 3.0 print as 3
        elif value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:
            raise ValueError(f"the client id is missing ({value}) at {where} {i}")
        else:
            raise TypeError(f"client ids must be integers or strings; {where} {i} has {value!r}")
        first.setdefault(kind, i)
        distinct.add(value)
    if len(first) > 1:
        raise TypeError(
            "client ids must be all integers or all strings; "
            + ", ".join(f"{where} {i} has type {kind.__name__}" for kind, i in first.items())
        )
    return tuple(sorted(distinct))


def is_sparse(X: Any) -> bool:
    """Whether X is a scipy.sparse array or matrix."""
    sparse = sys.modules.get("scipy.sparse")  # slow to import; who has such an array has imported it
    return sparse is not None and bool(sparse.issparse(X))


def as_array(X: Any) -> Any:
    """X as a CSR array where it is sparse, else as a NumPy array."""
    if not is_sparse(X):
        return np.asarray(X)
    from scipy import sparse

    return sparse.csr_array(X)


def precision(dtype: Any) -> np.dtype[Any]:
    """float32 or float64 as asked for by name; nothing else is worked with."""
    found: np.dtype[Any] = np.dtype(dtype)
    if found not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise TypeError(f"dtype must be float32 or float64, got {found}")
    return found


def float_dtype(dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    """float32 for half and single precision, float64 for every other real number, None for the rest."""
    if dtype.kind not in "buif":
        return None
    return np.dtype(np.float32 if dtype.kind == "f" and dtype.itemsize <= 4 else np.float64)


def as_features(X: Any, where: str, names: Names = None) -> tuple[Any, Names]:
    """X as a numeric (n, p) or (n, p1, p2) array or canonical CSR, not yet cast; and its column names."""
    if isinstance(X, np.ma.MaskedArray):
        raise TypeError(f"{where} is a masked array: fill or drop its missing values")
    if hasattr(X, "columns"):
        own = tuple(map(str, X.columns))
        if names is not None and names != own:
            raise ValueError(f"the columns of {where} are {listing(own)}; expected {listing(names)}")
        names = own
    X = as_array(X)
    if X.ndim not in (2, 3):
        raise ValueError(f"{where} must have shape (rows, features) or (rows, p1, p2), got {X.shape}")
    if 0 in X.shape[1:]:
        raise ValueError(f"{where} has no columns: its shape is {X.shape}")
    if names is not None and len(names) != math.prod(X.shape[1:]):
        raise ValueError(f"{len(names)} feature names for {math.prod(X.shape[1:])} columns of {where}")
    if float_dtype(X.dtype) is None:
        _refuse_columns(X, where, names)
    if is_sparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X, names


def _refuse_columns(X: Any, where: str, names: Names) -> NoReturn:
    """Name the first column of a non-numeric X with an entry that is not a number."""
    if X.dtype.kind == "O" and not is_sparse(X):
        for index in np.ndindex(X.shape):
            if not isinstance(X[index], numbers.Real):
                remedy = ENCODE if isinstance(X[index], str | bytes) else ""
                raise TypeError(
                    f"{where} must be numeric: {column(index[1:], names)} holds {X[index]!r}{remedy}"
                )
    raise TypeError(f"{where} must be numeric, got dtype {X.dtype}: convert it with astype(float)")


def column(index: Sequence[int], names: Names) -> str:
    """How an error names a column; ``index`` has two entries for matrix-valued rows."""
    if len(index) == 1 and names is not None:
        return f"column {names[index[0]]!r}"
    return f"column {index[0] if len(index) == 1 else tuple(map(int, index))}"


def as_numbers(values: Any, name: str, rows: Rows) -> NDArray[Any]:
    """One real number per row, sorted with the rows, not yet cast; a column of shape (n, 1) is flattened."""
    where = f"client {rows.ids[0]!r}: " if rows.within_client else ""
    numeric: NDArray[Any] = np.asarray(values)
    if numeric.ndim == 2 and numeric.shape[1] == 1:
        numeric = numeric[:, 0]
    if numeric.ndim != 1:
        raise ValueError(f"{where}{name} must have one dimension, got shape {numeric.shape}")
    if len(numeric) != len(rows):
        raise ValueError(f"{where}X has {len(rows)} rows but {name} has {len(numeric)}")
    if rows.order is not None:
        numeric = numeric[rows.order]
    if float_dtype(numeric.dtype) is None:
        for i, value in enumerate(numeric.tolist()):
            if not isinstance(value, numbers.Real):
                remedy = ": encode classes as 0, 1, 2, …" if isinstance(value, str | bytes) else ""
                raise TypeError(f"{name} must be numeric: {rows.name(i)} holds {value!r}{remedy}")
        raise TypeError(f"{where}{name} must be numeric, not {numeric.dtype}: convert it with astype(float)")
    return numeric


def blocks(n_rows: int, row_size: int) -> Iterator[slice]:
    """Slices that cover the rows, each of at most about ``BLOCK`` numbers."""
    step = max(1, BLOCK // row_size)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def gather(X: Any, order: NDArray[np.intp] | None) -> Any:
    """``X[order]`` in C order and its float dtype: X itself if that is what it is, else one copy."""
    dtype = float_dtype(X.dtype)
    if is_sparse(X):
        return (X if order is None else X[order]).astype(dtype, copy=False)
    if order is not None:
        refuse_copy(X, "its rows are not sorted by client")
    if X.dtype != dtype:
        refuse_copy(X, f"it is {X.dtype}, not float32 or float64")
    if not X.flags.c_contiguous:
        refuse_copy(X, "its rows do not lie one after the other (C order)")
    if order is None:
        return np.ascontiguousarray(X, dtype=dtype)
    out = np.empty(X.shape, dtype)
    for block in blocks(len(X), X[0].size):
        out[block] = X[order[block]]
    return out


def refuse_single(name: str, of: str, value: Any) -> None:
    """Refuse a string where a list is meant: it would be taken letter by letter."""
    if isinstance(value, str):
        raise TypeError(f"{name} must be a list of {of}, got the single string {value!r}")


def refuse_copy(X: Any, because: str) -> None:
    """Refuse to load the whole of a memory-mapped array."""
    if is_mapped(X):
        raise ValueError(
            f"X is memory-mapped, but {because}, so that all of it ({X.nbytes / 1e9:.3g} GB) would have "
            "to be loaded: write it in that form first, or give np.array(X) if there is room"
        )


def is_mapped(X: Any) -> bool:
    """Whether an array, or what it is a view of, is memory-mapped."""
    while isinstance(X, np.ndarray):
        if isinstance(X, np.memmap):
            return True
        X = X.base
    return False


def check_features(X: Any, rows: Rows, names: Names, allow_missing: bool = False) -> bool:
    """Refuse infinity and, unless allowed, NaN in X, looked for block by block; whether there is NaN."""
    refused = np.isinf if allow_missing else _is_not_finite
    has_missing = False
    if is_sparse(X):
        for block in blocks(len(X.data), 1):
            bad = np.flatnonzero(refused(X.data[block]))
            has_missing |= allow_missing and bool(np.isnan(X.data[block]).any())
            if len(bad):
                at = block.start + int(bad[0])
                i = int(np.searchsorted(X.indptr, at, side="right")) - 1
                _refuse_value("X", f"{rows.name(i)}, {column([X.indices[at]], names)}", X.data[at])
        return has_missing
    for block in blocks(len(X), X[0].size):
        if not np.isfinite(X[block]).all():
            where = np.argwhere(refused(X[block]))
            if len(where):
                i, *index = where[0]
                at = block.start + int(i)
                _refuse_value("X", f"{rows.name(at)}, {column(index, names)}", X[(at, *index)])
            has_missing = True
    return has_missing


def _is_not_finite(values: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(~np.isfinite(values))


def check_numbers(values: NDArray[Any], dtype: np.dtype[Any], name: str, rows: Rows) -> NDArray[Any]:
    """Cast one number per row to ``dtype``; refuse those that are not finite in it."""
    with np.errstate(over="ignore"):
        cast = np.ascontiguousarray(values, dtype=dtype)
    bad = np.flatnonzero(~np.isfinite(cast))
    if len(bad):
        _refuse_value(name, rows.name(int(bad[0])), values[bad[0]])
    # pandas hands out read-only columns, for which compiled code would be compiled a second time
    return cast if cast.flags.writeable else cast.copy()


def _refuse_value(name: str, where: str, value: Any) -> NoReturn:
    raise ValueError(f"{name} must be finite: {where} holds {value}")


def normalise_rows(
    weight: NDArray[np.float64], offsets: NDArray[np.int64], ids: tuple[ClientId, ...]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sample weights of mean one inside each client, and the totals S_k that they had."""
    sizes, totals = np.diff(offsets), np.add.reduceat(weight, offsets[:-1])
    if not totals.all():
        raise ValueError(f"the sample weights of client {ids[int(np.argmin(totals))]!r} sum to zero")
    return weight * np.repeat(sizes / totals, sizes), totals


def client_weights(
    weights: Any, totals: NDArray[np.float64], ids: tuple[ClientId, ...]
) -> NDArray[np.float64]:
    """π_k > 0 with Σ π_k = 1: proportional to the totals S_k, equal, or as given."""
    if isinstance(weights, str):
        if weights not in ("samples", "uniform"):
            raise ValueError(f'weights must be "samples", "uniform" or {len(ids)} numbers, got {weights!r}')
        pi = totals if weights == "samples" else np.ones(len(ids))
    else:
        pi = np.asarray(weights, dtype=np.float64)
        if pi.shape != (len(ids),):
            raise ValueError(f"weights must hold {len(ids)} numbers, one per client, got shape {pi.shape}")
        bad = np.flatnonzero(~(np.isfinite(pi) & (pi > 0)))
        if len(bad):
            raise ValueError(f"weights must be positive: client {ids[bad[0]]!r} has {pi[bad[0]]}")
    return np.asarray(pi / pi.sum())


def listing(known: Iterable[Any]) -> str:
    """The first names of a list that may be long, and how many there are."""
    names = [repr(name) for name in known]
    return ", ".join(names[:30]) + (f", … ({len(names)} in all)" if len(names) > 30 else "")


def closest(name: Any, known: Iterable[Any]) -> str:
    """A hint for an unknown name: the known ones that look like it."""
    by_text = {str(other): other for other in known}
    close = difflib.get_close_matches(str(name), by_text, n=3, cutoff=0.5)
    return f"; closest: {', '.join(repr(by_text[text]) for text in close)}" if close else ""
