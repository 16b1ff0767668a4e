"""Where clients run when nobody says."""

from __future__ import annotations

from typing import Any

from unpooled.engines.local import Local
from unpooled.remote.data import RemoteData


def default_engine(data: Any) -> Any:
    """In this process, or where the rows are."""
    if isinstance(data, RemoteData):
        from unpooled.remote.engine import Remote

        return Remote()
    return Local()
