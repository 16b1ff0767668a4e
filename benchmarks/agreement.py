"""Equal work is checked, not believed: every contender's result is compared before it is timed."""

from __future__ import annotations

import numpy as np

from unpooled.kernels.arrays import Array


class DisagreementError(AssertionError):
    """A contender computed something else; its time would mean nothing."""


def relative_error(w: Array, truth: Array) -> float:
    """‖w − truth‖ / ‖truth‖ in the Frobenius norm."""
    return float(np.linalg.norm(w - truth) / np.linalg.norm(truth))


def check(name: str, w: Array, truth: Array, tolerance: float) -> float:
    """The relative error, refused where it is not within the tolerance (NaN never is)."""
    error = relative_error(w, truth)
    if not error <= tolerance:
        raise DisagreementError(f"{name} differs from the engine by {error:.1e}, allowed is {tolerance:.0e}")
    return error
