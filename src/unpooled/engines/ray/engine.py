"""The engine for a Ray cluster that is trusted: each actor holds the rows of some clients."""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, finalize

from unpooled._validation import is_mapped
from unpooled.engines.base import Say, Task, say_nothing
from unpooled.engines.remote.data import RemoteData
from unpooled.engines.remote.engine import RemoteClients
from unpooled.engines.remote.oracles import RemoteOracles
from unpooled.kernels.arrays import Array

if TYPE_CHECKING:
    from unpooled.data.federated import FederatedData
    from unpooled.engines.ray.transport import RayTransport

RETRIES = 2  # of what an actor that died was asked


@dataclass(frozen=True, eq=False)
class Ray:
    """Run on a Ray cluster (the extra "ray"). Results have the bits of ``engines.Local``.

    Rows go to the actors once, neighbouring clients together, about equally many rows each; rounds carry
    vectors only. An actor that dies is started again from the copy of its rows in Ray's object store, and
    what it was asked is asked again: a run goes on, with the same bits. After ``RETRIES`` deaths in a row it
    ends with a ``TooFewClientsError`` that names the clients. Exact solvers sum in the same order; BLAS on
    another number of threads may still differ in the last bits.

    Parameters
    ----------
    actors : how many; None for one for each ``threads`` cores of the cluster. Never more than clients.
    address : of a cluster; None for the one that this process is connected to, else that of the variable
        RAY_ADDRESS, else one started on this machine. Only one that was started here is shut down again.
    threads : that each actor computes on.
    resources : options of the actors, as in ``ray.remote``. They reserve no cores; ``{"num_cpus": 1}`` does.

    ``close`` ends the actors, as does the end of a ``with``; without either they end with the data.
    """

    actors: int | None = None
    address: str | None = None
    threads: int = 1
    resources: Mapping[str, Any] = field(default_factory=dict)
    _opened: WeakKeyDictionary[FederatedData, RemoteData] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False
    )
    _started: list[bool] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        for name, count in (("actors", self.actors), ("threads", self.threads)):
            if count is not None and not (isinstance(count, int) and count >= 1):
                raise ValueError(f"{name} must be a whole number of at least 1, got {count!r}")

    def open(
        self, task: Task, data: FederatedData, memory: Array | None = None, say: Say = say_nothing
    ) -> RemoteClients:
        """The clients of a run, ready for its rounds. The driver keeps what they remember."""
        return RemoteClients(task, self.data(data), memory, say, retries=RETRIES, keeps="server")

    def open_oracles(self, data: FederatedData) -> RemoteOracles:
        """The clients of an exact solver, ready for its questions."""
        return RemoteOracles(self.data(data))

    def data(self, data: FederatedData) -> RemoteData:
        """The data at actors, which are started once."""
        if data not in self._opened:
            transport = self._transport(data)
            finalize(data, transport.close)
            known = RemoteData.of(transport, retries=RETRIES, trusted=True)
            self._opened[data] = dataclasses.replace(known, weights=data.weights)
        return self._opened[data]

    def _transport(self, data: FederatedData) -> RayTransport:
        ray = self._connected()
        from unpooled.engines.ray.shares import shares
        from unpooled.engines.ray.transport import RayTransport

        cores = int(ray.cluster_resources().get("CPU", 1))
        parts = shares(data, self.actors or max(1, cores // self.threads))
        # none reserved: actors of other data that are still there would otherwise be waited for, for ever
        options = {"num_cpus": 0, "scheduling_strategy": "SPREAD", **self.resources}
        return RayTransport(parts, self.threads, is_mapped(data.X), options)

    def _connected(self) -> Any:
        """Ray, connected to a cluster; no usage statistics leave from it."""
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # or it warns of graphics cards
        try:
            import ray
        except ImportError:
            raise ImportError("engines.Ray needs Ray: pip install 'unpooled[ray]'") from None
        if not ray.is_initialized():
            address = self.address or os.environ.get("RAY_ADDRESS")
            here: dict[str, Any] = {} if address else {"include_dashboard": False}
            ray.init(address or "local", log_to_driver=False, logging_level=logging.WARNING, **here)
            self._started.append(True)
        return ray

    def close(self) -> None:
        """End the actors; and Ray, where this engine started it."""
        for remote in list(self._opened.values()):
            remote.transport.close()
        self._opened.clear()
        if self._started:
            import ray

            ray.shutdown()
            self._started.clear()

    def __enter__(self) -> Ray:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
