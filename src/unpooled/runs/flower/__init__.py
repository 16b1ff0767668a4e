"""Runs across organisations, through Flower (https://flower.ai); ``pip install 'unpooled[flower]'``.

Imported only when asked for. Of flwr its Message API is used, ``flwr.app``, ``flwr.serverapp`` and
``flwr.clientapp``; a study's sites (``fleet``, ``node``) also speak the Fleet interface below it.

    client_app(load)                what runs at a site
    server_app(problem, …)          what runs at the coordinator: an exact solve, or an algorithm's rounds
    CompositeStrategy(…)            an algorithm as a strategy, for a server app of one's own
    GridTransport(grid)             requests over a Grid, for anything else
    SuperLink, SuperNode, write_app Flower's processes
    allow(MyLoss, …)                classes of your own that may cross, at both ends
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unpooled.engines.flower.app_folder import write_app
    from unpooled.engines.flower.client import client_app
    from unpooled.engines.flower.superlink import Certificates, RunStatus, SuperLink
    from unpooled.engines.flower.supernode import SuperNode
    from unpooled.engines.flower.transport import GridTransport
    from unpooled.engines.remote.specs import allow
    from unpooled.runs.flower.server import server_app
    from unpooled.runs.flower.strategy import CompositeStrategy

__all__ = [
    "Certificates",
    "CompositeStrategy",
    "GridTransport",
    "RunStatus",
    "SuperLink",
    "SuperNode",
    "allow",
    "client_app",
    "server_app",
    "write_app",
]

_HOMES = {
    "engines.flower.app_folder": ("write_app",),
    "engines.flower.client": ("client_app",),
    "engines.flower.superlink": ("Certificates", "RunStatus", "SuperLink"),
    "engines.flower.supernode": ("SuperNode",),
    "engines.flower.transport": ("GridTransport",),
    "engines.remote.specs": ("allow",),
    "runs.flower.server": ("server_app",),
    "runs.flower.strategy": ("CompositeStrategy",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"unpooled.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
