"""The versions a result was computed with."""

from __future__ import annotations

import platform
from importlib.metadata import version

from unpooled._version import __version__


def versions() -> dict[str, str]:
    """Of unpooled, Python and the libraries that compute."""
    libraries = {name: version(name) for name in ("numpy", "scipy", "numba")}
    return {"unpooled": __version__, "python": platform.python_version(), **libraries}
