"""Sorting loose runs into methods: runs that differ in nothing but the seed belong together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from unpooled.runs.run import Run

PER_SEED = ("seed", "data", "start", "algorithm")  # go with the seed; an open number is chosen from the data


def grouped(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """Methods by name: the algorithm's, and where several share it also the settings that tell them apart."""
    alike: dict[str, list[Run]] = {}
    for run in runs:
        shared = {k: v for k, v in run.settings.items() if k not in PER_SEED}
        key = json.dumps([run.settings["algorithm"]["name"], shared], sort_keys=True)
        copy = 0
        while any(other.seed == run.seed for other in alike.get(f"{key} {copy}", [])):
            copy += 1
        alike.setdefault(f"{key} {copy}", []).append(run)
    named: dict[str, list[Run]] = {}
    for group in alike.values():
        name = _name(group[0], [other[0] for other in alike.values()])
        taken, copy = name, 1
        while taken in named:
            copy += 1
            taken = f"{name} ({copy})"
        named[taken] = sorted(group, key=lambda run: run.seed)
    return named


def _name(run: Run, all_runs: Sequence[Run]) -> str:
    algorithm = str(run.settings["algorithm"]["name"])
    mine = flat(run.settings)
    others = [flat(r.settings) for r in all_runs if r.settings["algorithm"]["name"] == algorithm]
    differ = [k for k in mine if k not in PER_SEED and any(other.get(k) != mine[k] for other in others)]
    return ", ".join([algorithm, *(f"{k} {mine[k]}" for k in differ)])


def flat(settings: Mapping[str, Any]) -> dict[str, str]:
    """Settings by name as text; the algorithm's own stand beside the run's."""
    inner = {k: v for k, v in settings.get("algorithm", {}).items() if k != "name"}
    outer = {k: v for k, v in settings.items() if k not in ("algorithm", "asked")}
    return {name: text(value) for name, value in {**inner, **outer}.items()}


def text(value: Any) -> str:
    """A setting for people."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}".replace("inf", "∞")
    if isinstance(value, list | tuple):
        return "[" + ", ".join(text(item) for item in value) + "]"
    return str(value)
