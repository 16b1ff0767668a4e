"""The folder that ``flwr run`` takes: a pyproject.toml that names installed modules, and nothing else."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path

from unpooled._version import __version__

Setting = bool | int | float | str


def write_app(
    folder: Path,
    server: str,
    client: str,
    config: Mapping[str, Setting] | None = None,
    name: str = "unpooled-run",
) -> Path:
    """Write the app's folder, and give it back.

    ``server`` and ``client`` are "module:name" of a ServerApp and a ClientApp that are installed where they
    run: no code travels. ``config`` holds every key that ``SuperLink.run`` may set, with its default.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        "[project]",
        f"name = {json.dumps(name)}",
        f"version = {json.dumps(__version__)}",
        'license = "Apache-2.0"',
        "dependencies = []",
        "",
        "[tool.flwr.app]",
        'publisher = "unpooled"',
        "",
        "[tool.flwr.app.components]",
        f"serverapp = {json.dumps(server)}",
        f"clientapp = {json.dumps(client)}",
        "",
        "[tool.flwr.app.config]",
        settings(config or {}),
    ]
    (folder / "pyproject.toml").write_text("\n".join(lines), encoding="utf-8")
    return folder


def settings(config: Mapping[str, Setting]) -> str:
    """Flat settings as TOML."""
    return "".join(f"{_key(key)} = {_value(key, value)}\n" for key, value in config.items())


def _key(key: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]+", key):
        raise ValueError(f"a setting's name has letters, digits, - and _ only, got {key!r}")
    return key


def _value(key: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value)
    raise TypeError(f"setting {key} must be a bool, a number or a string, got {value!r}")
