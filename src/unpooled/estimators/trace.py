"""Trace regression: rows that are matrices, coefficients that are a matrix of low rank."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from unpooled.arrays import Array, Float
from unpooled.data import FederatedData
from unpooled.estimators.base import FederatedRegressor
from unpooled.estimators.matrix_problem import MatrixProblem
from unpooled.losses import Squared
from unpooled.penalties import Nuclear
from unpooled.penalties.inputs import finite_number
from unpooled.problem import Problem


class FederatedTraceRegressor(FederatedRegressor):
    """minimise  1/(2N) Σ_i (y_i − ⟨X_i, W⟩ − b)² + α‖W‖_*,  W of shape (p1, p2), ‖W‖_* = Σ σ_i(W).

    X is (n, p1, p2); or, as pipelines want it, (n, p1·p2) with each matrix row by row and ``shape=(p1, p2)``.
    Without a shape, rows of p numbers are p × 1 matrices, whose nuclear norm is the Euclidean one. ``coef_``
    has the shape of W. With sample weights the first term is 1/(2Σs) Σ_i s_i (…)². The other parameters and
    the fitted attributes are those of ``FederatedEstimator``.
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        shape: tuple[int, int] | None = None,
        fit_intercept: bool = True,
        solver: Any = "auto",
        tol: float = 1e-8,
        max_rounds: int = 500,
        min_rows: int = 10,
        second_order: bool = True,
        engine: Any = None,
    ):
        self.alpha = alpha
        self.shape = shape
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_rounds = max_rounds
        self.min_rows = min_rows
        self.second_order = second_order
        self.engine = engine

    def _gather(self, X: Any, y: Any, clients: Any, sample_weight: Any) -> tuple[FederatedData, Array]:
        given = self._row_shape(X)
        data, number = super()._gather(_flat(X), y, clients, sample_weight)
        self._shape = given or (data.n_features, 1)
        return data, number

    def _row_shape(self, X: Any) -> tuple[int, int] | None:
        """The shape of a row: that of X, or the parameter's."""
        own = X.row_shape if isinstance(X, FederatedData) else _shape(X)[1:]
        if len(own) == 2:
            if self.shape is not None and tuple(self.shape) != own:
                raise ValueError(f"shape={self.shape}, but the rows of X have shape {own}")
            return int(own[0]), int(own[1])
        if self.shape is None:
            return None
        if len(self.shape) != 2 or any(int(size) != size or size < 1 for size in self.shape):
            raise ValueError(f"shape must be two whole numbers, got {self.shape!r}")
        return int(self.shape[0]), int(self.shape[1])

    def _prepare(self, data: FederatedData) -> FederatedData:
        flat = data.X if data.is_sparse else data.X.reshape(data.n_rows, -1)
        return replace(data, X=flat, truth=None)

    def _problem(self, data: FederatedData) -> Problem:
        penalty = Nuclear(finite_number("alpha", self.alpha, 0.0))
        return MatrixProblem(Squared(), penalty, bool(self.fit_intercept), shape=self._shape)

    def predict(self, X: Any) -> Float:
        """⟨X_i, W⟩ + b for each row, of shape (p1, p2) or flat."""
        return super().predict(_flat(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags


def _flat(X: Any) -> Any:
    """Rows that are matrices, row by row; everything else as it is."""
    if isinstance(X, FederatedData) or len(_shape(X)) != 3:
        return X
    X = np.asarray(X)
    return X.reshape(len(X), -1)


def _shape(X: Any) -> tuple[int, ...]:
    """The shape of an array, or of lists in lists; what has none is left to scikit-learn to refuse."""
    shape = getattr(X, "shape", None)
    if shape is None and isinstance(X, list | tuple):
        try:
            shape = np.shape(X)
        except ValueError:  # ragged
            return ()
    return () if shape is None else tuple(shape)
