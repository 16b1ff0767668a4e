"""Flower's public modules, imported when they are needed; without them, how to get them."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from unpooled.engines.flower.environment import be_quiet


@functools.cache
def module(name: str) -> Any:
    """A public module of flwr."""
    be_quiet()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "flwr":
            raise
        raise ModuleNotFoundError(
            "Flower is not installed: pip install 'unpooled[flower]'", name=error.name
        ) from error


def app() -> Any:
    """``flwr.app``: messages and records."""
    return module("flwr.app")


def serverapp() -> Any:
    """``flwr.serverapp``."""
    return module("flwr.serverapp")


def clientapp() -> Any:
    """``flwr.clientapp``."""
    return module("flwr.clientapp")
