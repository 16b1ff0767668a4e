"""Matrix completion: some entries of a matrix, scattered over clients, and a matrix of low rank."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted, validate_data

from unpooled._ledger import Ledger
from unpooled.data.federated import FederatedData
from unpooled.estimators import fit_inputs
from unpooled.estimators.base import FederatedRegressor, WithAlpha
from unpooled.estimators.matrix_problem import MatrixProblem, two_sizes
from unpooled.exact.fit import Fit
from unpooled.kernels.arrays import Array, Float
from unpooled.losses import Squared
from unpooled.penalties import Nuclear
from unpooled.problem import Problem


@dataclass(eq=False, repr=False)
class FederatedMatrixCompletion(WithAlpha, FederatedRegressor):
    """minimise  1/(2N) Σ_n (y_n − M_{i_n j_n} − b)² + α‖M‖_*,  ‖M‖_* = Σ σ_i(M).

    A row of X is a pair (i, j) of whole numbers from 0, y the value observed there; an entry may be observed
    more than once, and by several clients. ``shape`` is that of M; None takes the largest numbers that
    clients have, which they tell in a round of its own. α‖M‖_* stands beside a mean over the N observations:
    soft-impute's λ is Nα. With sample weights the first term is 1/(2Σs) Σ_n s_n (…)². ``coef_`` is M,
    ``intercept_`` is b, and ``predict`` gives M_ij + b.

    Each round is a gradient of p1·p2 numbers: with ``solver="auto"`` this is "anderson", for a Gram matrix
    would tell which entries a client has. The other parameters and the fitted attributes are those of
    ``FederatedEstimator``.
    """

    _: KW_ONLY
    shape: tuple[int, int] | None = None

    def _gather(self, X: Any, y: Any, clients: Any, sample_weight: Any) -> tuple[FederatedData, Array]:
        if isinstance(X, FederatedData):
            rows = fit_inputs.rows_of(fit_inputs.from_federated(self, X, y, clients, sample_weight))
            pairs = _pairs(rows.X)
        else:
            X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
            pairs = _pairs(X)
            rows = fit_inputs.with_clients(self, X, y, clients, sample_weight)
            pairs = pairs[rows.number]
        self._shape = self._seen(pairs)
        indicator = _indicator(pairs, self._shape)
        return replace(rows, X=indicator, names=None).federated()

    def _seen(self, pairs: Array) -> tuple[int, int]:
        """The shape of M, which holds every pair."""
        least = (int(pairs[:, 0].max()) + 1, int(pairs[:, 1].max()) + 1)
        if self.shape is None:
            return least
        shape = two_sizes(self.shape)
        if shape[0] < least[0] or shape[1] < least[1]:
            raise ValueError(f"shape={shape}, but X holds pairs up to ({least[0] - 1}, {least[1] - 1})")
        return shape

    def _loss(self, data: FederatedData) -> Any:
        return Squared()

    def _penalty(self, lam: float) -> Any:
        return Nuclear(lam)

    def _stated(self, loss: Any, penalty: Any) -> Problem:
        return MatrixProblem(loss, penalty, bool(self.fit_intercept), shape=self._shape)

    def _solve(self, problem: Problem, data: FederatedData, folds: Any) -> Fit:
        fit = super()._solve(problem, data, folds)
        if self.shape is not None:
            return fit
        K = data.n_clients  # each sends its largest numbers, and is sent the shape
        agreement = replace(Ledger().after_answers(K, 2 * K, 2 * K, ("largest pair",)), setup_rounds=1)
        return replace(fit, ledger=agreement + fit.ledger)

    def _options(self) -> dict[str, Any]:
        return super()._options() | {"solver": "anderson" if self.solver == "auto" else self.solver}

    def predict(self, X: Any) -> Float:
        """M_ij + b for each pair (i, j) of X."""
        check_is_fitted(self)
        X = X.X if isinstance(X, FederatedData) else validate_data(self, X, dtype=np.float64, reset=False)
        pairs = _pairs(X)
        p1, p2 = self.coef_.shape
        if (pairs[:, 0] >= p1).any() or (pairs[:, 1] >= p2).any():
            raise ValueError(f"X holds pairs outside the fitted {p1} × {p2} matrix: fit with a larger shape")
        return np.asarray(self.coef_[pairs[:, 0], pairs[:, 1]] + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.two_d_array = False  # pairs of numbers are not features
        tags.input_tags.categorical = True
        tags.input_tags.positive_only = True
        return tags


def _pairs(X: Any) -> Array:
    """Rows (i, j) as whole numbers from 0."""
    X = np.asarray(X)
    if X.ndim != 2 or X.shape[1] != 2:
        raise ValueError(f"X must hold pairs (i, j), one a row, got shape {X.shape}")
    pairs = X.astype(np.int64)
    wrong = np.flatnonzero((pairs != X).any(axis=1) | (pairs < 0).any(axis=1))
    if len(wrong):
        i = int(wrong[0])
        raise ValueError(f"X must hold pairs of whole numbers from 0: row {i} is {X[i].tolist()}")
    return np.asarray(pairs)


def _indicator(pairs: Array, shape: tuple[int, int]) -> Any:
    """A CSR row for each pair, with a one at its entry of the matrix row by row."""
    n, size = len(pairs), shape[0] * shape[1]
    columns = pairs[:, 0] * shape[1] + pairs[:, 1]
    return sparse.csr_array((np.ones(n), columns, np.arange(n + 1)), shape=(n, size))
