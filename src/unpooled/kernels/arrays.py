"""Type aliases for arrays."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
"""An array of numbers; docstrings state its shape."""

Arrays: TypeAlias = dict[str, Array]
"""Named arrays: a broadcast, an upload, a state."""

Float: TypeAlias = npt.NDArray[np.float64]
