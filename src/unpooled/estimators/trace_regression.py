"""Trace regression: rows that are matrices, coefficients that are a matrix of low rank."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np

from unpooled.data.federated import FederatedData
from unpooled.estimators.base import FederatedRegressor, SharesGramMatrices, WithAlpha
from unpooled.estimators.matrix_problem import MatrixProblem, two_sizes
from unpooled.kernels.arrays import Array, Float
from unpooled.losses import Squared
from unpooled.penalties import Nuclear
from unpooled.problem import Problem


@dataclass(eq=False, repr=False)
class FederatedTraceRegressor(WithAlpha, FederatedRegressor, SharesGramMatrices):
    """minimise  1/(2N) Σ_i (y_i − ⟨X_i, W⟩ − b)² + α‖W‖_*,  W of shape (p1, p2), ‖W‖_* = Σ σ_i(W).

    X is (n, p1, p2); or, as pipelines want it, (n, p1·p2) with each matrix row by row and ``shape=(p1, p2)``.
    Without a shape, rows of p numbers are p × 1 matrices, whose nuclear norm is the Euclidean one. ``coef_``
    has the shape of W. With sample weights the first term is 1/(2Σs) Σ_i s_i (…)². The other parameters and
    the fitted attributes are those of ``FederatedEstimator``.
    """

    _: KW_ONLY
    shape: tuple[int, int] | None = None

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
        return None if self.shape is None else two_sizes(self.shape)

    def _prepare(self, data: FederatedData) -> FederatedData:
        flat = data.X if data.is_sparse else data.X.reshape(data.n_rows, -1)
        return replace(data, X=flat, truth=None)

    def _loss(self, data: FederatedData) -> Any:
        return Squared()

    def _penalty(self, lam: float) -> Any:
        return Nuclear(lam)

    def _stated(self, loss: Any, penalty: Any) -> Problem:
        return MatrixProblem(loss, penalty, bool(self.fit_intercept), shape=self._shape)

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
