"""A study: several sweeps in one file, such as ``speedup``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from unpooled.experiments.experiment import table
from unpooled.experiments.sweep import Sweep, make_sweep


@dataclass(frozen=True)
class Study:
    """Sweeps that belong together."""

    name: str
    title: str
    about: str
    provenance: dict[str, str]
    sweeps: dict[str, Sweep]


def is_study(name: str) -> bool:
    """Whether the experiment of this name is a study."""
    return "sweeps" in table(name)


@cache
def read_study(name: str) -> Study:
    """The study of this name."""
    file = table(name)
    sweeps = {key: make_sweep(key, sweep) for key, sweep in file["sweeps"].items()}
    return Study(name, file["title"], file["about"], file["provenance"], sweeps)
