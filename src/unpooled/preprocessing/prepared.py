"""Prepared data, how new rows become like them, and how models come back to raw units."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from unpooled._ledger import Ledger
from unpooled._validation import Rows, as_features, check_features, float_dtype, is_sparse
from unpooled.data.federated import FederatedData
from unpooled.exact.path import Path
from unpooled.kernels.arrays import Float
from unpooled.preprocessing.site_intercepts import SiteIntercepts, site_intercepts
from unpooled.preprocessing.transform import transformed
from unpooled.problem import Problem


@dataclass(frozen=True, eq=False, repr=False)
class Prepared:
    """``data`` has the rows (x − shift)/scale; ``fill`` is what stands for missing values, if anything may.

    ``notes`` say what was done and to which columns; ``ledger`` what crossed the network for it.
    """

    data: FederatedData
    shift: Float
    scale: Float
    fill: Float | None
    has_site_intercepts: bool
    unpenalised: tuple[int, ...]
    ledger: Ledger
    notes: tuple[str, ...]

    def problem(self, loss: Any, penalty: Any, intercept: bool = True) -> Problem:
        """The problem as ``prepare`` was told: site intercepts, and columns without a penalty."""
        if self.unpenalised:
            penalty = penalty.leaving_free(self.unpenalised, self.data.row_shape)
        return Problem(loss, penalty, "sites" if self.has_site_intercepts else intercept)

    def apply(self, X: Any) -> Any:
        """New rows, or the rows of other federated data, as the prepared ones are."""
        if isinstance(X, FederatedData):
            return replace(X, X=self.apply(X.X), has_missing=False)
        X, _ = as_features(X, "X", self.data.feature_names)
        if X.shape[1:] != self.data.row_shape:
            raise ValueError(f"a row of X has shape {X.shape[1:]}, but those prepared {self.data.row_shape}")
        if is_sparse(X) and self.shift.any():
            raise ValueError("X is sparse, but the prepared rows are centred: give X dense")
        if X.shape[0]:
            everyone = Rows(("new rows",), np.array([0, X.shape[0]]))
            check_features(X, everyone, self.data.feature_names, self.fill is not None)
        return transformed(X, self.shift, self.scale, self.fill, float_dtype(X.dtype))

    def back(self, w: Any, intercept: Any = None, *, is_path: bool | None = None) -> tuple[Float, Any]:
        """(coef, intercept) for raw rows: coef = w/scale, intercept − Σ_j shift_j coef_j.

        ``w`` has the shape of a row, (p, C) for Softmax, or a first axis over the λ of a path; a Path may be
        given instead. ``is_path`` says so where shapes leave it open. Where columns were centred, a model
        without an intercept has one in raw units.
        """
        if isinstance(w, Path):
            w, intercept, is_path = w.coefs, w.intercepts, True
        w = np.asarray(w, dtype=np.float64)
        if self._is_path(w.shape, intercept, is_path):
            models = [
                self.back(each, None if intercept is None else intercept[i], is_path=False)
                for i, each in enumerate(w)
            ]
            coefs = np.array([coef for coef, _ in models])
            return coefs, None if models[0][1] is None else np.array([b for _, b in models])
        d = self.scale.ndim
        extra = (1,) * (w.ndim - d)
        coef = w / self.scale.reshape(self.scale.shape + extra)
        if not self.shift.any():
            return coef, intercept
        moved = np.tensordot(self.shift, coef, axes=d)
        if intercept is None:
            b: Any = -moved
        else:
            b = np.asarray(intercept, dtype=np.float64) - moved
        return coef, float(b) if np.ndim(b) == 0 else np.asarray(b)

    def site_intercepts(self, w: ArrayLike, problem: Problem, *, engine: Any = None) -> SiteIntercepts:
        """Every site's own intercept in raw units, for the prepared coefficients ``w``; one round."""
        found = site_intercepts(problem, self.data, w, engine=engine)
        _, moved = self.back(w, None, is_path=False)
        return found if moved is None else found.shifted(moved)

    def _is_path(self, shape: tuple[int, ...], intercept: Any, given: bool | None) -> bool:
        row = self.scale.shape
        one = shape == row or (len(row) == 1 and len(shape) == 2 and shape[0] == row[0])
        many = len(shape) > len(row) and shape[1 : 1 + len(row)] == row and len(shape) <= len(row) + 2
        if given is True:
            one = False
        elif given is False:
            many = False
        if one and many:
            raise ValueError(f"w of shape {shape} may be (p, C) or a path: say so with is_path")
        if not one and not many:
            raise ValueError(f"w has shape {shape}, but a row has {row}")
        return many

    def __repr__(self) -> str:
        return f"Prepared({self.data!r}; {self.ledger})"
