"""Data frames by client: one frame per client, or one frame with a column of client ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from unpooled._validation import ClientId, listing, sort_rows, sorted_ids
from unpooled.kernels.arrays import Array


@dataclass(frozen=True, eq=False)
class SiteFrames:
    """Columns of the clients' frames, in the order of ids."""

    ids: tuple[ClientId, ...]
    names: tuple[Any, ...]
    frames: tuple[Any, ...]
    rows: tuple[Array | slice, ...]

    @classmethod
    def of(cls, frames: Any, client: Any) -> SiteFrames:
        """From a mapping of client to frame, or from one frame with client ids in the column ``client``."""
        if isinstance(frames, Mapping):
            if client is not None:
                raise ValueError("the clients are the keys of the mapping of frames: name no column")
            if not frames:
                raise ValueError("the data has no clients")
            ids = sorted_ids(frames, "client")
            given = {int(key) if not isinstance(key, str) else key: frame for key, frame in frames.items()}
            ordered = tuple(given[name] for name in ids)
            first = tuple(ordered[0].columns)
            for name, frame in zip(ids, ordered, strict=True):
                if tuple(frame.columns) != first:
                    raise ValueError(
                        f"client {ids[0]!r} has the columns {listing(first)}, but client {name!r} "
                        f"{listing(frame.columns)}"
                    )
            return cls(ids, first, ordered, tuple(slice(None) for _ in ids))
        if not hasattr(frames, "columns"):
            raise TypeError(f"expected a frame, or frames by client, got {type(frames).__name__}")
        names = tuple(frames.columns)
        if client is None or client not in names:
            raise ValueError(f"the frame has no client column {client!r}; it has {listing(names)}")
        rows = sort_rows(frames[client].to_numpy())
        order = np.arange(len(rows)) if rows.order is None else rows.order
        parts = tuple(order[a:b] for a, b in zip(rows.offsets[:-1], rows.offsets[1:], strict=True))
        return cls(rows.ids, tuple(n for n in names if n != client), (frames,) * len(parts), parts)

    def column(self, name: Any) -> Iterator[tuple[ClientId, Array]]:
        """Each client's values of a column."""
        for site, frame, rows in zip(self.ids, self.frames, self.rows, strict=True):
            yield site, np.asarray(frame[name].to_numpy())[rows]
