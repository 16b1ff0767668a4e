"""Layout of a model's coefficients and intercepts in the flat vector that algorithms work on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from unpooled._wording import numbered
from unpooled.kernels.arrays import Array, Float


@dataclass(frozen=True)
class Layout:
    """Coefficients of ``shape``, output by output, then ``n_intercepts`` intercepts.

    A vector (p,) or the matrix (p1, p2) of a trace regression is flattened row by row (``order`` "C"). The
    (p, C) coefficients of C outputs are stored output by output (``order`` "F"), so that x·w_c reads
    contiguous memory.
    """

    shape: tuple[int, ...]
    order: Literal["C", "F"]
    n_intercepts: int

    @cached_property
    def n_coefficients(self) -> int:
        """The length of the penalised part."""
        return math.prod(self.shape)

    @cached_property
    def size(self) -> int:
        """The length of the flat vector."""
        return self.n_coefficients + self.n_intercepts

    @property
    def n_outputs(self) -> int:
        """C, the number of margins per row."""
        return self.shape[1] if self.order == "F" else 1

    def pack(
        self,
        w: ArrayLike | None,
        intercept: ArrayLike | None = None,
        name: str = "w",
        intercept_name: str = "intercept",
    ) -> Float:
        """The flat vector of (w, intercept); None means zero. The names appear in error messages."""
        flat = np.zeros(self.size)
        if w is not None:
            w = np.asarray(w, dtype=np.float64)
            if w.shape != self.shape:
                raise ValueError(
                    f"{name} has shape {w.shape}, but this problem's coefficients have {self.shape}"
                )
            if not np.isfinite(w).all():
                raise ValueError(
                    f"{name} has "
                    + numbered(int(np.sum(~np.isfinite(w))), "entry that is", "entries that are")
                    + " NaN or infinite"
                )
            flat[: self.n_coefficients] = w.ravel(order=self.order)
        if intercept is not None:
            if self.n_intercepts == 0:
                raise ValueError(
                    f"{intercept_name} is given, but the problem has no intercept: use "
                    "Problem(…, intercept=True)"
                )
            b = np.atleast_1d(np.asarray(intercept, dtype=np.float64))
            if b.shape != (self.n_intercepts,):
                raise ValueError(f"{intercept_name} has shape {b.shape}, expected ({self.n_intercepts},)")
            flat[self.n_coefficients :] = b
        return flat

    def unpack(self, flat: Array) -> tuple[Float, Float | float | None]:
        """(w, intercept) of a flat vector; the intercept is a float for one output, None if there is none."""
        w = np.array(flat[: self.n_coefficients], dtype=np.float64).reshape(self.shape, order=self.order)
        if self.n_intercepts == 0:
            return w, None
        b = np.array(flat[self.n_coefficients :], dtype=np.float64)
        return w, (b if self.order == "F" else float(b[0]))
