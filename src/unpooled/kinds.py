"""The statistics that leave a site, in words that a data protection officer can read."""

from __future__ import annotations

from collections.abc import Iterable

WORDS = {
    "anchor": "column means",
    "conjugate": "dual objective",
    "curvature": "bounds of the curvature",
    "diagonal": "diagonal of the Gram matrix or Hessian",
    "diagonal_rows": "row counts",
    "dual_gradient": "gradients",
    "floor": "least possible loss",
    "gradient": "gradients",
    "gram": "Gram matrix",
    "hessian": "Hessians",
    "hidden_weight": "row counts",
    "hidden_x": "column means",
    "intercept": "site intercepts",
    "loss": "losses",
    "losses": "held-out losses",
    "mean_t": "mean of the target",
    "mean_x": "column means",
    "mean_xt": "products of columns and target",
    "mean_yy": "mean square of the target",
    "missing": "counts of missing values",
    "observed": "counts of observed values",
    "offset": "column means",
    "refused_columns": "refusals",
    "refused_rows": "refusals",
    "rows": "row counts",
    "squares": "sums of squares",
}


def in_words(kinds: Iterable[str]) -> str:
    """``Gram matrix, column means, …``: each once, in the order of the alphabet; other names as they are."""
    return ", ".join(sorted({WORDS.get(kind, kind) for kind in kinds}, key=str.lower))
