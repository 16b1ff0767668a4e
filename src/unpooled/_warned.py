"""Warnings that point at the user's line, however deep in the library they are raised."""

from __future__ import annotations

import os
import sys
import warnings

PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost call that comes from outside this package; at the outermost where none does."""
    frame, level = sys._getframe(1), 2
    while frame.f_code.co_filename.startswith(PACKAGE) and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
