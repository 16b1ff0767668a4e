"""Files of columns, some rows at a time by pyarrow: Parquet, and Arrow's own format, which is Feather's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SUFFIXES = (".parquet", ".arrow", ".feather")  # what is looked for in a folder; a file says itself what it is
ARROW = b"ARROW1"  # how an Arrow file begins


@dataclass(frozen=True)
class ParquetColumns:
    """A Parquet file; only the pages that are needed are read."""

    source: Any

    @classmethod
    def of(cls, file: Path) -> ParquetColumns:
        """Those of a file."""
        from pyarrow.parquet import ParquetFile

        # a buffer makes pyarrow read pages as they are needed, not whole row groups
        return cls(ParquetFile(file, buffer_size=1 << 20, pre_buffer=False))

    @property
    def schema(self) -> Any:
        """Names and types of the columns."""
        return self.source.schema_arrow

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.source.metadata.num_rows)

    def batches(self, columns: list[str], n: int) -> Iterator[Any]:
        """These columns, at most n rows at a time."""
        yield from self.source.iter_batches(batch_size=n, columns=columns, use_threads=False)


@dataclass(frozen=True)
class ArrowColumns:
    """An Arrow file, mapped; one that is compressed is decoded batch by batch as it was written."""

    source: Any
    reader: Any

    @classmethod
    def of(cls, file: Path) -> ArrowColumns:
        """Those of a file."""
        from pyarrow import ipc, memory_map

        source = memory_map(str(file))
        return cls(source, ipc.open_file(source))

    @property
    def schema(self) -> Any:
        """Names and types of the columns."""
        return self.reader.schema

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return sum(batch.num_rows for batch in self._stored())

    def batches(self, columns: list[str], n: int) -> Iterator[Any]:
        """These columns, at most n rows at a time."""
        # Asked for some fields only, the reader would copy them into memory instead of mapping them.
        for batch in self._stored():
            for start in range(0, batch.num_rows, n):
                yield batch.slice(start, n).select(columns)

    def _stored(self) -> Iterator[Any]:
        """The batches of the file."""
        return (self.reader.get_batch(i) for i in range(self.reader.num_record_batches))


@contextmanager
def opened(file: Path) -> Iterator[ParquetColumns | ArrowColumns]:
    """The columns of a file, closed in the end."""
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(
            "Parquet and Arrow are read by pyarrow: pip install 'unpooled[data]' brings it"
        ) from error
    with file.open("rb") as beginning:
        is_arrow = beginning.read(len(ARROW)) == ARROW
    try:
        columns = ArrowColumns.of(file) if is_arrow else ParquetColumns.of(file)
    except pyarrow.ArrowInvalid as error:
        raise ValueError(
            f"{file} is neither a Parquet nor an Arrow file, or it is damaged ({error})"
        ) from error
    with columns.source:
        yield columns
