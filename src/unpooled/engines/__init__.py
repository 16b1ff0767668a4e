"""Where the clients run."""

from unpooled.engines.local import Local

__all__ = ["Local"]
