"""The weights α_t of dual averaging, in their scale-free form.

    α_t = (1 + t/a)²,    A_t = α_0 + … + α_t,    A_{−1} = 0

The paper writes α_t = (t + a)² and γ; dividing both by a² changes nothing but the size of the numbers
and makes γ̃ = γ/a² the inverse of the first step. Uniform weights are a = ∞.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from unpooled.kernels.arrays import Array

SCHEDULES = ("polynomial", "uniform", "theory", "measured")
OUTPUTS = ("last", "average")


def alpha(t: Array | float, a: float) -> Array:
    """α_t."""
    return (1.0 + np.asarray(t, dtype=np.float64) / a) ** 2


def total(t: Array | float, a: float) -> Any:
    """A_t, in closed form."""
    t = np.asarray(t, dtype=np.float64) if isinstance(t, np.ndarray) else float(t)
    return (t + 1.0) * (1.0 + t / a + t * (2.0 * t + 1.0) / (6.0 * a * a))


def check_schedule(schedule: str, a: float | None, output: str) -> None:
    """Refuse what is not a schedule, an ``a`` that does not belong to it, and unknown outputs."""
    if schedule not in SCHEDULES:
        raise ValueError(f"schedule must be one of {', '.join(SCHEDULES)}, got {schedule!r}")
    if output not in OUTPUTS:
        raise ValueError(f"output must be one of {', '.join(OUTPUTS)}, got {output!r}")
    if a is not None and not a > 0:
        raise ValueError(f"a must be positive, got {a!r}")
    if schedule == "uniform" and a is not None and not math.isinf(a):
        raise ValueError(f"the uniform schedule has no a (got {a!r}); schedule='polynomial' takes it")
