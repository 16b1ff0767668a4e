"""The one place where the version is written, and the versions a result was computed with."""

import platform
from importlib.metadata import version

__version__ = "0.1.0"


def versions() -> dict[str, str]:
    """Of unpooled, Python and the libraries that compute."""
    libraries = {name: version(name) for name in ("numpy", "scipy", "numba")}
    return {"unpooled": __version__, "python": platform.python_version(), **libraries}
