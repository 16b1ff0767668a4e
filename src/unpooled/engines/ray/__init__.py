"""The engine of a trusted Ray cluster."""

from unpooled.engines.ray.engine import Ray

__all__ = ["Ray"]
