"""Requests and replies as Flower's records: a ConfigRecord with JSON in it, an ArrayRecord, bit for bit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from unpooled._files import array_of
from unpooled.engines.flower.environment import app
from unpooled.engines.remote.messages import Reply, Request
from unpooled.kernels.arrays import Arrays

SPEC, ARRAYS = "unpooled.spec", "unpooled.arrays"


class NotOursError(ValueError):
    """A message without our records in it."""


def request_record(request: Request) -> Any:
    """A request as a RecordDict."""
    return _record({"kind": request.kind}, request.spec, request.arrays)


def reply_record(reply: Reply, client: str) -> Any:
    """A reply as a RecordDict, with the client id of the node that gives it."""
    return _record({"client": client}, reply.spec, reply.arrays)


def request_of(record: Any) -> Request:
    """The request in a RecordDict."""
    head, spec, arrays = _parts(record)
    return Request(str(head.get("kind", "")), spec, arrays)


def reply_of(record: Any) -> tuple[str, Reply]:
    """The client id and the reply in a RecordDict."""
    head, spec, arrays = _parts(record)
    return str(head.get("client", "")), Reply(spec, arrays)


def array_record(arrays: Arrays) -> Any:
    """Named arrays as an ArrayRecord, whatever their shapes and dtypes."""
    return app().ArrayRecord({name: app().Array(np.asanyarray(a)) for name, a in arrays.items()})


def arrays_of(record: Any) -> Arrays:
    """The arrays of an ArrayRecord."""
    return {name: array_of(array.data, name) for name, array in record.items()}


def _record(head: dict[str, str], spec: Mapping[str, Any], arrays: Arrays) -> Any:
    text = json.dumps(dict(spec))
    return app().RecordDict(
        {SPEC: app().ConfigRecord({**head, "spec": text}), ARRAYS: array_record(arrays)},
    )


def _parts(record: Any) -> tuple[dict[str, Any], dict[str, Any], Arrays]:
    if SPEC not in record or ARRAYS not in record:
        raise NotOursError(f"a message has the records {sorted(record)}, not those of unpooled")
    head = dict(record[SPEC])
    try:
        return head, json.loads(head.pop("spec")), arrays_of(record[ARRAYS])
    except RecursionError:
        raise NotOursError("a message is nested too deeply") from None
