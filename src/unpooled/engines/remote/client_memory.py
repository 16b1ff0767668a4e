"""What clients remember from round to round, at their holder, until the server says which round counted."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from unpooled._validation import ClientId
from unpooled.kernels.arrays import Array, Arrays


class Recollection(NamedTuple):
    """What a client computed for itself in a round."""

    round: int
    rows: Array


class ClientMemory:
    """At most two recollections a client: of the last round known to count, and of the one after it.

    A round whose reply was lost leaves a recollection that never counts; the next request says so, and it is
    dropped. ``dump`` and ``load`` serve holders that start anew for every request.
    """

    def __init__(self) -> None:
        self.run = ""
        self.kept: dict[ClientId, list[Recollection]] = {}

    def begin(self, run: str) -> None:
        """Forget everything unless it is of this run."""
        if run != self.run:
            self.run, self.kept = run, {}

    def recall(self, name: ClientId, counted: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """What the client remembered after the last of its rounds that counted (−1: none has)."""
        if counted < 0:
            self.kept[name] = []
            return np.zeros(shape, dtype)
        found = [each for each in self.kept.get(name, []) if each.round == counted]
        if not found:
            raise ValueError(f"client {name!r} has lost what it remembered of round {counted + 1}")
        self.kept[name] = found[-1:]
        return np.array(found[-1].rows)

    def store(self, name: ClientId, round: int, rows: Array) -> None:
        """What the client will remember if the round counts."""
        earlier = [each for each in self.kept.get(name, []) if each.round != round]
        self.kept[name] = [*earlier[-1:], Recollection(round, np.array(rows))]

    def dump(self) -> tuple[dict[str, Any], Arrays]:
        """Everything, as plain data and arrays."""
        arrays: Arrays = {}
        entries: list[list[Any]] = []
        for name, kept in self.kept.items():
            for each in kept:
                arrays[str(len(entries))] = each.rows
                entries.append([name, each.round])
        return {"run": self.run, "entries": entries}, arrays

    def load(self, spec: dict[str, Any], arrays: Arrays) -> None:
        """Take back what ``dump`` returned."""
        self.run, self.kept = spec["run"], {}
        for i, (name, round) in enumerate(spec["entries"]):
            self.kept.setdefault(name, []).append(Recollection(round, arrays[str(i)]))
