"""The vector operations of the local loops, as loops that compile to one pass each."""

from __future__ import annotations

from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel


@kernel
def assign(out: Array, x: Array) -> None:
    """out ← x, in out's precision."""
    for q in range(out.size):
        out[q] = x[q]


@kernel
def subtract(out: Array, x: Array, y: Array) -> None:
    """out ← x − y."""
    for q in range(out.size):
        out[q] = x[q] - y[q]


@kernel
def add_difference(out: Array, x: Array, y: Array) -> None:
    """out ← out + x − y."""
    for q in range(out.size):
        out[q] += x[q] - y[q]
