"""The names that signatures use for arrays."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
"""An array of numbers; its shape stands in the docstring."""

Arrays: TypeAlias = dict[str, Array]
"""Named vectors: what a server broadcasts, what a client sends, what a state holds."""

Float: TypeAlias = npt.NDArray[np.float64]
