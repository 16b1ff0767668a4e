"""What clients remember from round to round, in the state of Flower's context."""

from __future__ import annotations

import json
from typing import Any

from unpooled.engines.flower.installed import app
from unpooled.engines.flower.records import array_record, arrays_of
from unpooled.kernels.arrays import Arrays

MEMORY, MEMORY_ARRAYS = "unpooled.memory", "unpooled.memory.arrays"


def keep_memory(state: Any, spec: dict[str, Any], arrays: Arrays) -> None:
    """Put it in."""
    state[MEMORY] = app().ConfigRecord({"spec": json.dumps(spec)})
    state[MEMORY_ARRAYS] = array_record(arrays)


def memory_of(state: Any) -> tuple[dict[str, Any], Arrays]:
    """Take it out."""
    return json.loads(state[MEMORY]["spec"]), arrays_of(state[MEMORY_ARRAYS])
