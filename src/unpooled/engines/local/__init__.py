"""The engine of this process: compiled local loops, the clients of a cohort in parallel."""

from unpooled.engines.local.engine import Local

__all__ = ["Local"]
