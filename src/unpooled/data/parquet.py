"""Parquet and Arrow files as memory-mapped arrays: converted once, batch by batch, into .npy files.

Both are stored by column, and mostly compressed; a local step wants rows at random places. So the rows are
written once in the form that FederatedData has, sorted by client, and read back as mappings: the operating
system brings in the pages that are used and drops them when memory is short.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from unpooled import _validation as validation
from unpooled._validation import Rows
from unpooled.data import column_files

BATCH = 1 << 19  # numbers decoded at a time
FORMAT = 1
INDEX = re.compile(r"__index_level_\d+__")

Source = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


class Mapped(NamedTuple):
    """The arrays of federated data, in files; what is not small is mapped, not loaded."""

    rows: Rows
    X: NDArray[Any]
    y: NDArray[Any]
    sample_weight: NDArray[Any] | None
    names: tuple[str, ...]


@dataclass(frozen=True)
class Columns:
    """Which columns mean what; ``client`` is None where every file is a client of its own."""

    target: str
    features: tuple[str, ...]
    client: str | None
    sample_weight: str | None

    @property
    def special(self) -> list[str]:
        """Those that are not features."""
        return [name for name in (self.target, self.client, self.sample_weight) if name is not None]

    @property
    def read(self) -> list[str]:
        """Those that are read as numbers: the features, the target, the weight."""
        return [*self.features, self.target, *([self.sample_weight] if self.sample_weight else [])]


def mapped(
    source: Source,
    target: str,
    features: Sequence[str] | None,
    client: str | None,
    sample_weight: str | None,
    cache: str | os.PathLike[str],
    dtype: DTypeLike | None,
) -> Mapped:
    """The arrays of such files, converted unless ``cache`` already has them from the files as they are."""
    files = _files(source)
    columns, natural = _columns(files, target, features, client, sample_weight)
    dtype = validation.precision(natural if dtype is None else dtype)
    state = [(str(f.resolve()), f.stat().st_size, f.stat().st_mtime_ns) for f in files]
    content = json.dumps([FORMAT, state, columns.read, columns.client, dtype.str])
    folder = Path(cache) / hashlib.blake2b(content.encode(), digest_size=8).hexdigest()
    if not folder.is_dir():
        unfinished = folder.with_name(f".{folder.name}.{os.getpid()}")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        try:
            _convert(files, columns, dtype, unfinished)
            os.replace(unfinished, folder)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
    return _open(folder, columns)


def _files(source: Source) -> list[Path]:
    """The files of a folder, in order of their names, or the files that were given."""
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        known = column_files.SUFFIXES
        files = sorted(f for f in path.iterdir() if f.suffix in known) if path.is_dir() else [path]
        if not files:
            raise FileNotFoundError(f"there is no {', '.join(known[:-1])} or {known[-1]} file in {path}")
    else:
        files = [Path(name) for name in source]
    if not files:
        raise ValueError("no files were given")
    for file in files:
        if not file.is_file():
            raise FileNotFoundError(f"there is no file {file}")
    return files


def _columns(
    files: list[Path], target: str, features: Sequence[str] | None, client: str | None, weight: str | None
) -> tuple[Columns, np.dtype[Any]]:
    """What is read, and the precision that holds it; refused where the files do not all have it."""
    columns, dtypes, known = Columns(target, (), client, weight), set(), {}
    for file in files:
        with column_files.opened(file) as source:
            schema = source.schema
        for name in columns.special:
            if name not in schema.names:
                raise ValueError(f"{file} has no column {name!r}; it has {validation.listing(schema.names)}")
        if not columns.features:
            chosen = features or _others(schema, columns)
            columns = _checked(Columns(target, tuple(chosen), client, weight), file)
        lacking = [name for name in columns.features if name not in schema.names]
        besides = set() if features is not None else {*_others(schema, columns)} - {*columns.features}
        if lacking or besides:
            differs = [f"lacks {validation.listing(lacking)}"] if lacking else []
            differs += [f"also has {validation.listing(sorted(besides))}"] if besides else []
            than = f"the {len(columns.features)} features asked for" if features else f"{files[0]}"
            raise ValueError(f"{file} has other columns than {than}: it {' and '.join(differs)}")
        for name in columns.read:
            kind = schema.field(name).type
            if kind not in known:
                known[kind] = _dtype(kind)
            if known[kind] is None:
                raise TypeError(
                    f"{file}: column {name!r} must be numeric, got {kind}; encode it or leave it out"
                )
            if name in columns.features:
                dtypes.add(known[kind])
    return columns, np.result_type(*dtypes)


def _others(schema: Any, columns: Columns) -> list[str]:
    """The columns without another role; the index that pandas writes is none of them."""
    return [name for name in schema.names if name not in columns.special and not INDEX.fullmatch(name)]


def _checked(columns: Columns, file: Path) -> Columns:
    for name in columns.features:
        if name in columns.special:
            raise ValueError(f"{name!r} is among the features and has another role as well")
    if len(set(columns.features)) < len(columns.features):
        twice = next(name for name in columns.features if columns.features.count(name) > 1)
        raise ValueError(f"the feature {twice!r} occurs twice")
    if not columns.features:
        raise ValueError(f"{file} has no features besides {validation.listing(columns.special)}")
    return columns


def _dtype(kind: Any) -> np.dtype[Any] | None:
    """The precision that holds an Arrow type; None where it is not a number."""
    import pyarrow

    is_number = pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind)
    if not is_number and not pyarrow.types.is_boolean(kind):
        return None
    return validation.float_dtype(np.dtype(kind.to_pandas_dtype()))


def _batches(file: Path, columns: list[str], n: int) -> Iterator[Any]:
    with column_files.opened(file) as source:
        yield from source.batches(columns, n)


def _convert(files: list[Path], columns: Columns, dtype: np.dtype[Any], folder: Path) -> None:
    """Write X (N, p) and below each other y and the sample weights, rows sorted by client."""
    rows = _rows(files, columns.client)
    place = None if rows.order is None else np.argsort(rows.order)
    p, n_read = len(columns.features), len(columns.read)
    X = np.lib.format.open_memmap(folder / "X.npy", "w+", dtype, (len(rows), p))
    rest = np.empty((n_read - p, len(rows)))
    at = 0
    for file in files:
        for batch in _batches(file, columns.read, max(1, BATCH // n_read)):
            block = np.empty((batch.num_rows, p), dtype)
            here = slice(at, at + batch.num_rows)
            to = here if place is None else place[here]
            with np.errstate(over="ignore"):  # the infinity is found below, and named
                for j in range(p):
                    block[:, j] = _numbers(batch.column(j))
            X[to] = block
            for j in range(p, n_read):
                rest[j - p, to] = _numbers(batch.column(j))
            at = here.stop
    X.flush()
    validation.check_features(X, rows, columns.features)
    np.save(folder / "rest.npy", rest)
    np.save(folder / "offsets.npy", rows.offsets)
    (folder / "ids.json").write_text(json.dumps(rows.ids))


def _rows(files: list[Path], client: str | None) -> Rows:
    """The clients of all rows: of files, by their names, or of the values of a column."""
    if client is None:
        labels: list[Any] = [file.stem for file in files]
        sizes = [_n_rows(file) for file in files]
        if 0 in sizes:
            raise ValueError(f"client {labels[sizes.index(0)]!r} has no rows")
        label, times = Counter(labels).most_common(1)[0]
        if times > 1:
            raise ValueError(f"client id {label!r} is given twice: {times} files have this name")
        codes = np.repeat(np.arange(len(files)), sizes)
    else:
        labels, codes = _column_codes(files, client)
    ids = validation.sorted_ids(labels, "file" if client is None else "distinct value")
    position = {name: k for k, name in enumerate(ids)}
    rank = np.array([position[label] for label in labels], dtype=np.int64)
    return replace(validation.sort_rows(rank[codes]), ids=ids, within_client=True)


def _n_rows(file: Path) -> int:
    with column_files.opened(file) as source:
        return source.n_rows


def _column_codes(files: list[Path], client: str) -> tuple[list[Any], NDArray[np.int64]]:
    """The distinct values of a column, first come first, and for each row which one it has."""
    import pyarrow

    number: dict[Any, int] = {}
    codes: list[NDArray[np.int64]] = []
    for file in files:
        at = 0
        for batch in _batches(file, [client], BATCH):
            column = batch.column(0)
            if column.null_count:
                row = at + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
                raise ValueError(f"{file}: the client id {client!r} is missing at row {row}")
            at += len(column)
            if pyarrow.types.is_dictionary(column.type):
                column = column.dictionary_decode()  # it may list values that no row has
            column = column.dictionary_encode()
            own = [number.setdefault(value, len(number)) for value in column.dictionary.to_pylist()]
            codes.append(np.array(own, dtype=np.int64)[column.indices.to_numpy()])
    return list(number), np.concatenate(codes)


def _numbers(column: Any) -> NDArray[Any]:
    """A column of a batch; what is missing is NaN."""
    import pyarrow

    if pyarrow.types.is_boolean(column.type):
        column = column.cast(pyarrow.uint8())
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _open(folder: Path, columns: Columns) -> Mapped:
    ids, offsets = tuple(json.loads((folder / "ids.json").read_text())), np.load(folder / "offsets.npy")
    rest = np.load(folder / "rest.npy")
    # copy-on-write: nothing is ever written, and compiled code need not know read-only arrays
    X = np.asarray(np.load(folder / "X.npy", mmap_mode="c"))
    weight = rest[1] if columns.sample_weight else None
    return Mapped(Rows(ids, offsets, within_client=True), X, rest[0], weight, columns.features)
