"""Where the clients run."""

from typing import TYPE_CHECKING, Any

from unpooled.engines.local.engine import Local

if TYPE_CHECKING:
    from unpooled.engines.ray.engine import Ray

__all__ = ["Local", "Ray"]


def __getattr__(name: str) -> Any:
    """Ray's engine, once it is asked for."""
    if name == "Ray":
        from unpooled.engines.ray.engine import Ray

        return Ray
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
