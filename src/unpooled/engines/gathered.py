"""What an engine hands to the server after a round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from unpooled._ledger import Traffic
from unpooled.kernels.arrays import Array, Arrays

Weigh = Callable[[Array], tuple[Array, float]]
"""The weights of those who took part, and the factor that turns their mean into Σ_k π_k up_k."""


class Gathered(NamedTuple):
    """The mean of the uploads of the clients ``present``, and that factor, ``participation``.

    ``memory`` is what clients will remember once the round counts, None where that is nothing; ``sent`` what
    they sent.
    """

    mean: Arrays
    participation: float
    present: Array
    memory: Any
    sent: Traffic
