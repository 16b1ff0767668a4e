"""Runs across organisations, through Flower (https://flower.ai); ``pip install 'unpooled[flower]'``.

Imported only when asked for. Of flwr its Message API is used, ``flwr.app``, ``flwr.serverapp`` and
``flwr.clientapp``; a study's sites (``fleet``, ``node``) also speak the Fleet interface below it.

    client_app(load)                what runs at a site
    server_app(problem, …)          what runs at the coordinator: an exact solve, or an algorithm's rounds
    CompositeStrategy(…)            an algorithm as a strategy, for a server app of one's own
    GridTransport(grid)             requests over a Grid, for anything else
    SuperLink, SuperNode, write_app Flower's processes
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unpooled.flower.app_folder import write_app
    from unpooled.flower.certificates import Certificates
    from unpooled.flower.client import client_app
    from unpooled.flower.server import server_app
    from unpooled.flower.strategy import CompositeStrategy
    from unpooled.flower.superlink import RunStatus, SuperLink
    from unpooled.flower.supernode import SuperNode
    from unpooled.flower.transport import GridTransport

__all__ = [
    "Certificates",
    "CompositeStrategy",
    "GridTransport",
    "RunStatus",
    "SuperLink",
    "SuperNode",
    "client_app",
    "server_app",
    "write_app",
]

_HOMES = {
    "app_folder": ("write_app",),
    "certificates": ("Certificates",),
    "client": ("client_app",),
    "server": ("server_app",),
    "strategy": ("CompositeStrategy",),
    "superlink": ("RunStatus", "SuperLink"),
    "supernode": ("SuperNode",),
    "transport": ("GridTransport",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"unpooled.flower.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
