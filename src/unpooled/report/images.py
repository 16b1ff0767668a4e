"""Coefficients as pictures: one a class, each pixel one byte."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np

from unpooled.runs.run import Run, Status


def pictures(shown: Mapping[str, Run], image: tuple[int, int]) -> dict[str, Any]:
    """Each method's (p, C) coefficients, class by class, as signed bytes relative to their largest.

    A coefficient that is not zero never becomes a zero byte. ``best``, the method with the lowest objective,
    is shown first.
    """
    methods = []
    for name, run in shown.items():
        w = np.nan_to_num(np.asarray(run.w, dtype=float))
        largest = float(np.abs(w).max()) or 1.0
        levels = np.sign(w) * np.ceil(np.abs(w) / largest * 127.0)
        methods.append(
            {
                "name": name,
                "seed": run.seed,
                "largest": float(f"{largest:.4g}"),
                "nonzeros": int(np.count_nonzero(w)),
                "zeros": [int(n) for n in (w == 0).sum(axis=0)],
                "pixels": base64.b64encode(levels.T.astype(np.int8).tobytes()).decode(),
            }
        )
    last = {name: float(run.history["objective"][-1]) for name, run in shown.items() if _ended(run)}
    best = min(last, key=lambda name: last[name]) if last else methods[0]["name"]
    return {"image": list(image), "methods": methods, "best": best}


def _ended(run: Run) -> bool:
    return run.status != Status.DIVERGED and len(run.history["objective"]) > 0
