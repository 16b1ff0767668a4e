"""A run's settings as plain data: written with it, and compared before it is resumed."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

from unpooled.algorithms.base import Algorithm
from unpooled.arrays import Float
from unpooled.data import FederatedData
from unpooled.problem import Problem

RESUMABLE = ("rounds",)  # settings that may differ when a run is resumed


def describe(
    algorithm: Algorithm, problem: Problem, data: FederatedData, start: Float, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Everything that decides a run's bits."""
    return {
        "algorithm": {"name": type(algorithm).__name__, **_plain(algorithm.settings())},
        "problem": repr(problem),
        "data": data.fingerprint(),
        "start": hashlib.blake2b(start.tobytes(), digest_size=8).hexdigest(),
        **_plain(dict(options)),
    }


def resumed(algorithm: Algorithm, settings: dict[str, Any]) -> Algorithm:
    """The algorithm with what it leaves open taken from the settings of the run to resume."""
    saved = settings["algorithm"]
    if saved["name"] != type(algorithm).__name__:
        raise ValueError(f"this is a run of {saved['name']}, it cannot be resumed with {algorithm}")
    open_ones = {name: saved[name] for name, value in algorithm.settings().items() if value is None}
    return dataclasses.replace(algorithm, **open_ones)  # type: ignore[type-var]


def check_same(saved: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse to resume under other settings, naming each that differs."""
    different = []
    for name, value in now.items():
        if name not in RESUMABLE and saved.get(name) != value:
            different.append(f"{name}: {saved.get(name)!r} then, {value!r} now")
    if different:
        raise ValueError("the run to resume had other settings: " + "; ".join(different))


def _plain(value: Any) -> Any:
    """Tuples as lists, NumPy numbers as Python's, so that what was read back from a file compares equal."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.item() if hasattr(value, "item") else value
