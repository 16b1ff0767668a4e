"""Uploads that came from elsewhere: checked before they count, then averaged as the local engine does.

A reply that is not what was asked for is refused whole; of one that is, single clients' uploads may be. Sums
run over clients in the order of their positions, through the local engine's own functions: the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unpooled.aggregation.base import Aggregate
from unpooled.engines.local.columns.sparse_rows import Uploads
from unpooled.engines.remote.messages import Reply
from unpooled.kernels.arrays import Array
from unpooled.kernels.weighted_sum import all_sound

NOT_FINITE = "its upload is not finite"


class UploadError(ValueError):
    """A reply that is not what was asked for."""


@dataclass(frozen=True)
class Expected:
    """What an upload has to look like."""

    round: int
    names: tuple[str, ...]  # of the vectors
    size: int  # of each
    dtype: np.dtype[Any]
    n_columns: int
    n_outputs: int
    memory: tuple[int, ...] | None  # what comes back of a client's memory, where it does
    names_features: bool  # whether uploads are sparse

    @property
    def n_intercepts(self) -> int:
        """How many numbers stand behind the coefficients."""
        return self.size - self.n_columns * self.n_outputs


@dataclass(frozen=True, eq=False)
class Batch:
    """One holder's uploads, of ``clients`` in order of position: ``up`` (S, vectors, size), or sparse ones.

    Sparse uploads: client s touches ``used[s]`` features, which stand one client after the other in
    ``feature``; its numbers likewise in ``values`` (see ``touched.Uploads``).
    """

    clients: Array
    up: Array | None
    used: Array
    feature: Array
    values: Array
    memory: Array | None

    def vectors(self, s: int, n_outputs: int, n_intercepts: int) -> Array:
        """What client s sent, without what it left out."""
        if self.up is not None:
            return np.asarray(self.up[s])
        start = n_outputs * int(self.used[:s].sum()) + n_intercepts * s
        return np.asarray(self.values[:, start : start + n_outputs * int(self.used[s]) + n_intercepts])


def read(reply: Reply, cohort: Array, expected: Expected) -> Batch:
    """A holder's uploads; ``UploadError`` says what is wrong with them."""
    told = reply.spec.get("round")
    if told != expected.round:
        stale = f"round {told + 1}" if isinstance(told, int) else "no round"
        raise UploadError(f"its reply is of {stale}, not of round {expected.round + 1}")
    if tuple(reply.spec.get("names", ())) != expected.names:
        raise UploadError(f"it sent {reply.spec.get('names')}, not {', '.join(expected.names)}")
    clients = _array(reply, "clients", np.dtype(np.int64), None)
    if not np.array_equal(clients, cohort):
        raise UploadError(_wrong_clients(clients, cohort))
    memory = None
    if expected.memory is not None:
        memory = _array(reply, "memory", expected.dtype, (len(cohort), *expected.memory))
        if not np.isfinite(memory).all():
            raise UploadError("what its clients remember is not finite")
    n, nothing = len(expected.names), np.empty(0, np.int64)
    if not expected.names_features:
        up = _array(reply, "up", expected.dtype, (len(cohort), n, expected.size))
        return Batch(clients, up, nothing, nothing, nothing, memory)
    used = _array(reply, "used", np.dtype(np.int64), (len(cohort),))
    if (used < 0).any():
        raise UploadError("it counts fewer than no features")
    feature = _array(reply, "feature", np.dtype(np.int64), (int(used.sum()),))
    if feature.size and not (feature.min() >= 0 and feature.max() < expected.n_columns):
        raise UploadError(f"it names features beyond the {expected.n_columns} that there are")
    numbers = expected.n_outputs * int(used.sum()) + expected.n_intercepts * len(cohort)
    values = _array(reply, "values", expected.dtype, (n, numbers))
    return Batch(clients, None, used, feature, values, memory)


def unsound(batch: Batch, expected: Expected, norm_bound: float) -> Iterator[tuple[int, str]]:
    """The clients of a batch whose uploads are refused, by position, and why."""
    for s, k in enumerate(batch.clients.tolist()):
        vectors = batch.vectors(s, expected.n_outputs, expected.n_intercepts)
        if not all_sound(vectors):
            yield k, NOT_FINITE
        elif norm_bound < math.inf:
            norm = float(np.linalg.norm(vectors.astype(np.float64)))
            if not norm <= norm_bound:
                yield k, f"its upload has the norm {norm:.3g}, above {norm_bound:g}"


def add_whole(
    mean: Array, weights: Array, present: Array, batches: Sequence[Batch], aggregate: Aggregate
) -> None:
    """Combine the uploads of the clients ``present``, in their order: all at once, or batch by batch."""
    where = _where(batches)
    at = 0
    if aggregate.needs_all:
        found = [where[int(k)] for k in present]
        aggregate.combine(mean, weights, np.array([_whole(batch)[s] for batch, s in found]))
        return
    while at < len(present):
        batch, s = where[int(present[at])]
        stop = at + 1  # neighbours in the same batch are added in one go
        while stop < len(present) and where[int(present[stop])] == (batch, s + stop - at):
            stop += 1
        aggregate.combine(
            mean, weights[at:stop], np.require(_whole(batch)[s : s + stop - at], requirements="W")
        )
        at = stop


def _whole(batch: Batch) -> Array:
    assert batch.up is not None
    return batch.up


def in_order(present: Array, batches: Sequence[Batch], expected: Expected) -> Uploads:
    """The sparse uploads of those who took part, in their order."""
    where = _where(batches)
    found = [where[int(k)] for k in present]
    used = np.array([batch.used[s] for batch, s in found], dtype=np.int64)
    feature = [batch.feature[batch.used[:s].sum() : batch.used[: s + 1].sum()] for batch, s in found]
    values = [batch.vectors(s, expected.n_outputs, expected.n_intercepts) for batch, s in found]
    return Uploads(
        present,
        np.empty(0, np.int64),
        np.concatenate([[0], np.cumsum(used)]).astype(np.int64),
        used,
        np.concatenate(feature),
        np.concatenate(values, axis=1),
        np.ones(len(present), np.bool_),
    )


def _where(batches: Sequence[Batch]) -> dict[int, tuple[Batch, int]]:
    """For every client the batch its upload is in, and at which place."""
    return {k: (batch, s) for batch in batches for s, k in enumerate(batch.clients.tolist())}


def _array(reply: Reply, name: str, dtype: np.dtype[Any], shape: tuple[int, ...] | None) -> Array:
    if name not in reply.arrays:
        raise UploadError(f"its reply has no {name!r}")
    array = np.asarray(reply.arrays[name])
    if array.dtype != dtype:
        raise UploadError(f"{name!r} has dtype {array.dtype}, expected {dtype}")
    if shape is not None and array.shape != shape:
        raise UploadError(f"{name!r} has shape {array.shape}, expected {shape}")
    return array


def _wrong_clients(clients: Array, cohort: Array) -> str:
    known, twice = set(cohort.tolist()), clients.size != np.unique(clients).size
    if twice:
        return "it sent the upload of a client twice"
    missing = sorted(known - set(clients.tolist()))
    if missing:
        return f"the uploads of {len(missing)} of its clients are missing"
    return "it sent uploads of clients that it was not asked for"
