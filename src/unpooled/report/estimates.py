"""What the methods estimated: the coefficients against the truth, or the singular values of a matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from unpooled.kernels.arrays import Array
from unpooled.report.images import pictures
from unpooled.report.numbers import plain
from unpooled.runs.run import Run

MOST_BINS = 512
FOUND = 0.01  # |w_j| above which support_f1 counts a coefficient as found
ENTRYWISE = ("L1(", "ElasticNet(", "GroupL2(")


def estimate(
    groups: Mapping[str, Sequence[Run]], truth: Array | None, image: tuple[int, int] | None = None
) -> dict[str, Any] | None:
    """The first run of each method, where its coefficients have the shape of the first method's."""
    firsts = {name: runs[0] for name, runs in groups.items()}
    shape = next(iter(firsts.values())).w.shape if truth is None else truth.shape
    shown = {name: run for name, run in firsts.items() if run.w.shape == shape and run.w.size}
    if not shown:
        return None
    same = len({run.seed for run in shown.values()}) == 1
    about = {
        "seed": next(iter(shown.values())).seed if same else None,
        "left_out": [name for name in firsts if name not in shown],
        "shape": list(shape),
    }
    if image is not None and len(shape) == 2 and shape[0] == image[0] * image[1]:
        return {"kind": "images", **about, **pictures(shown, image)}
    if is_spectral(shown.values(), shape):
        return {"kind": "spectrum", **about, **_spectra(shown, truth)}
    return {"kind": "coefficients", **about, **_stems(shown, truth)}


def is_spectral(runs: Any, shape: tuple[int, ...]) -> bool:
    """Whether the coefficients are a matrix whose penalty is not one on its entries or rows."""
    if len(shape) != 2 or min(shape) < 2:
        return False
    return not any(name in str(run.settings.get("problem", "")) for run in runs for name in ENTRYWISE)


def _spectra(shown: Mapping[str, Run], truth: Array | None) -> dict[str, Any]:
    return {
        "truth": None if truth is None else _singular_values(truth),
        "methods": [{"name": name, "seed": run.seed, "values": _singular_values(run.w)}
                    for name, run in shown.items()],
    }  # fmt: skip


def _singular_values(w: Array) -> list[float | None]:
    """Decreasing; those that are rounding of the largest are 0."""
    values = np.linalg.svd(np.asarray(w, dtype=float), compute_uv=False)
    floor = max(w.shape) * np.finfo(float).eps * values[0]
    return [plain(v) for v in np.where(values > floor, values, 0.0)[:MOST_BINS]]


def _stems(shown: Mapping[str, Run], truth: Array | None) -> dict[str, Any]:
    """Each bin's least and greatest coefficient, and how many are not zero; a bin is one where that fits."""
    size = next(iter(shown.values())).w.size
    edges = np.unique(np.linspace(0, size, min(size, MOST_BINS) + 1).astype(int))
    target = None if truth is None else np.asarray(truth, dtype=float).ravel()
    methods = []
    for name, run in shown.items():
        w = np.asarray(run.w, dtype=float).ravel()
        method = {"name": name, "seed": run.seed, **_binned(w, edges), **counts(w, target)}
        if target is not None:
            errors = _binned(w - target, edges)
            method |= {"error_low": errors["low"], "error_high": errors["high"]}
        methods.append(method)
    return {
        "edges": edges.tolist(),
        "truth": None if target is None else _binned(target, edges) | counts(target, target),
        "methods": methods,
    }


def _binned(values: Array, edges: Array) -> dict[str, Any]:
    starts = edges[:-1]
    return {
        "low": [plain(v) for v in np.minimum.reduceat(values, starts)],
        "high": [plain(v) for v in np.maximum.reduceat(values, starts)],
        "nonzero": np.add.reduceat((values != 0).astype(int), starts).tolist(),
    }


def counts(w: Array, truth: Array | None) -> dict[str, int]:
    """Of the support: exact nonzeros, and against the truth the found, missed and spurious ones."""
    result = {"nonzeros": int(np.count_nonzero(w))}
    if truth is not None:
        found, true = np.abs(w) > FOUND, truth != 0
        result |= {
            "true": int(true.sum()),
            "found": int((found & true).sum()),
            "missed": int((~found & true).sum()),
            "spurious": int((found & ~true).sum()),
        }
    return result
