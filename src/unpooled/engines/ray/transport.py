"""Requests to actors on a Ray cluster, each with a client server and the rows of some clients."""

from __future__ import annotations

import dataclasses
import importlib
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from unpooled._validation import is_sparse
from unpooled.data.federated import FederatedData
from unpooled.engines.remote.client_server import ClientServer
from unpooled.engines.remote.messages import Failure, Holder, Reply, Request, answered
from unpooled.kernels.arrays import Array


class ClientServerActor:
    """What runs in an actor's process."""

    def __init__(self, data: FederatedData, threads: int, mapped: bool):
        from threadpoolctl import threadpool_limits

        self._limits = threadpool_limits(limits=threads, user_api="blas")
        self.server = ClientServer(_as_written(data), threads=threads, trusted=True, mapped=mapped)

    def handle(self, request: Request) -> Reply | Failure:
        """The client server's reply."""
        return answered(self.server, request)

    def process(self) -> int:
        """The id of the actor's process, for whoever looks after the cluster."""
        return os.getpid()


class RayTransport:
    """``parts`` are put into the object store once. An actor that died is started again from there.

    Its request has then failed; whoever sent it may send it again.
    """

    def __init__(self, parts: list[FederatedData], threads: int, mapped: bool, options: Mapping[str, Any]):
        self._ray: Any = importlib.import_module("ray")
        actor = self._ray.remote(**options)(ClientServerActor)
        self._start: Callable[[Any], Any] = lambda part: actor.remote(part, threads, mapped)
        width = len(str(len(parts) - 1))
        self._parts = {f"actor {i:0{width}d}": self._ray.put(part) for i, part in enumerate(parts)}
        self._clients = {name: _listed(part.ids) for name, part in zip(self._parts, parts, strict=True)}
        self.actors: dict[Holder, Any] = {name: self._start(part) for name, part in self._parts.items()}

    def holders(self) -> tuple[Holder, ...]:
        """All actors, in the order of their clients."""
        return tuple(self._parts)

    def exchange(self, requests: Mapping[Holder, Request]) -> dict[Holder, Reply | Failure]:
        """Ask all of them at once."""
        pending = {holder: self.actors[holder].handle.remote(request) for holder, request in requests.items()}
        return {holder: self._answer(holder, reference) for holder, reference in pending.items()}

    def _answer(self, holder: Holder, reference: Any) -> Reply | Failure:
        from ray.exceptions import RayActorError, RayTaskError

        try:
            answer: Reply | Failure = self._ray.get(reference)
            return answer
        except RayActorError:
            self.actors[holder] = self._start(self._parts[holder])
            return Failure(f"the {holder} of {self._clients[holder]} died; it was started again")
        except RayTaskError as error:
            return Failure(f"the {holder} of {self._clients[holder]} failed: {error}")

    def close(self) -> None:
        """End the actors, and let go of their rows."""
        if self._ray.is_initialized():
            for actor in self.actors.values():
                self._ray.kill(actor)
        self.actors, self._parts = {}, {}


def _listed(ids: tuple[Any, ...]) -> str:
    if len(ids) == 1:
        return f"client {ids[0]!r}"
    return f"clients {ids[0]!r} to {ids[-1]!r}"


def _as_written(data: FederatedData) -> FederatedData:
    """Data from the object store as views that could be written to.

    Compiled code is made for arrays that are read-only or not; with these it is the code that local runs use.
    """
    X = data.X
    if is_sparse(X):
        X = sparse.csr_array((_open(X.data), _open(X.indices), _open(X.indptr)), shape=X.shape, copy=False)
    else:
        X = _open(X)
    s = None if data.sample_weight is None else _open(data.sample_weight)
    return dataclasses.replace(data, X=X, y=_open(data.y), offsets=_open(data.offsets), sample_weight=s)


class _Open:
    """Lends an array's memory as if it could be written to."""

    def __init__(self, array: Array):
        self.array = array
        interface = array.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}


def _open(array: Array) -> Array:
    return np.asarray(_Open(array)) if array.size and not array.flags.writeable else array
