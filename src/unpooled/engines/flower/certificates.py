"""The files by which sites know a coordinator."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Certificates:
    """What a SuperLink shows to be trusted: PEM files. Sites need the first one only."""

    ca: Path
    certificate: Path
    key: Path
