"""A run's settings as plain data: written with it, and compared before it is resumed."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from unpooled._files import plain
from unpooled._wording import counted
from unpooled.algorithms.base import Algorithm
from unpooled.data.base import Data
from unpooled.kernels.arrays import Float
from unpooled.problem import Problem

NOT_COMPARED = ("algorithm", "asked", "rounds")  # rounds may differ; the algorithm has its own comparison


def describe(
    asked: Algorithm,
    algorithm: Algorithm,
    problem: Problem,
    data: Data,
    start: Float,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Everything that decides a run's bits; ``asked`` is the algorithm as the user gave it."""
    return {
        "algorithm": {"name": type(algorithm).__name__, **plain(algorithm.settings())},
        "asked": plain(asked.settings()),
        "problem": f"{_without_address(problem)} #{_digest(_identity(problem))}",
        "data": data.fingerprint(),
        "start": _digest(start.tobytes()),
        **plain(dict(options)),
    }


def named(value: Any) -> str:
    """An object's repr; where that is its address, what it is made of, which is the same in every process."""
    text = _without_address(value)
    return text if text == repr(value) else f"{text} #{_digest(_identity(value))}"


def _without_address(value: Any) -> str:
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def resumed(algorithm: Algorithm, saved: dict[str, Any], rounds: int) -> tuple[Algorithm, list[str]]:
    """The algorithm of the run to resume, all its numbers known; refused where the user now asks for others.

    A number agrees that is what was asked for then, or what was chosen then; one that is left open now takes
    what was chosen then.
    """
    chosen = dict(saved["algorithm"])
    name = chosen.pop("name")
    if name != type(algorithm).__name__:
        raise ValueError(f"this is a run of {name}, it cannot be resumed with {algorithm}")
    now = plain(algorithm.settings())
    _refuse(
        f"algorithm's {field}: {chosen[field]!r} then, {value!r} now"
        for field, value in now.items()
        if value not in (None, saved["asked"][field], chosen[field])
    )
    fields = [field.name for field in dataclasses.fields(algorithm) if field.init]  # type: ignore[arg-type]
    known = dataclasses.replace(algorithm, **{field: chosen[field] for field in fields})  # type: ignore[type-var]
    notes = []
    if rounds != saved["rounds"] and None in now.values():
        notes.append(f"the numbers chosen for {counted(saved['rounds'], 'round')} were kept for {rounds}")
    return known, notes


def check_same(saved: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse to resume under other settings, naming each that differs."""
    _refuse(
        f"{name}: {saved.get(name)!r} then, {value!r} now"
        for name, value in now.items()
        if name not in NOT_COMPARED and saved.get(name) != value
    )


def _refuse(differences: Any) -> None:
    found = list(differences)
    if found:
        raise ValueError("the run to resume had other settings: " + "; ".join(found))


def _identity(value: Any) -> Any:
    """What an object is made of, without its address: its type and, field by field, its values."""
    if isinstance(value, np.ndarray):
        return (value.shape, value.dtype.str, _digest(value.tobytes()))
    if isinstance(value, dict):
        return sorted((repr(key), _identity(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return [_identity(item) for item in value]
    if isinstance(value, str | bytes | int | float | complex | np.generic) or value is None:
        return repr(value)
    parts = {name: item for name, item in getattr(value, "__dict__", {}).items() if not name.startswith("__")}
    return (type(value).__qualname__, _identity(parts))


def _digest(value: Any) -> str:
    content = value if isinstance(value, bytes) else repr(value).encode()
    return hashlib.blake2b(content, digest_size=8).hexdigest()
