"""What the clients of a run are to do, wherever they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from unpooled.algorithms.base import Algorithm
    from unpooled.problem import BoundProblem


@dataclass(frozen=True)
class Task:
    """An algorithm on a problem; ``seed`` draws minibatches, ``dtype`` is the precision of vectors."""

    algorithm: Algorithm
    problem: BoundProblem
    seed: int
    batch_size: int | None  # rows of a local step; None for all
    dtype: np.dtype[Any]
