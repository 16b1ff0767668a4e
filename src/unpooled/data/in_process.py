"""What solvers and runs ask of data whose rows are in this process: the part of ``Data`` that computes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from unpooled._validation import is_sparse
from unpooled.data.base import Posed
from unpooled.data.row_curvature import client_spectra, curvature_shares
from unpooled.kernels.arrays import Array, Float
from unpooled.kernels.linalg.lanczos import Operator
from unpooled.kernels.rows import DenseRows, SparseRows

if TYPE_CHECKING:
    from unpooled.data.federated import FederatedData


class InProcess:
    """The rows of all clients, at hand."""

    X: Any
    y: NDArray[Any]
    sample_weight: NDArray[np.float64] | None

    @property
    def record(self) -> DenseRows | SparseRows:
        """All rows as compiled loops read them, without a copy."""
        weight = np.empty(0) if self.sample_weight is None else self.sample_weight
        weight = np.asarray(weight, dtype=self.X.dtype)
        if is_sparse(self.X):
            X = self.X
            return SparseRows(X.data, X.indices, X.indptr, int(X.shape[1]), self.y, weight)
        return DenseRows(np.asarray(self.X).reshape(len(self.y), -1), self.y, weight)

    @property
    def engine(self) -> None:
        """None: any engine can run these clients, for their rows are in this process."""
        return None

    def bind(self, problem: Posed) -> Any:
        """The problem laid out for these rows (see ``Problem.bind``)."""
        return problem.bind_rows(cast("FederatedData", self))

    def smooth(self, problem: Posed, w: Array, intercept: Any = None) -> float:
        """Σ_k π_k L_k(w)."""
        return problem.smooth_of_rows(w, cast("FederatedData", self), intercept)

    def spectra(self, problem: Posed) -> tuple[Float, Float]:
        """Each client's largest curvature and longest row (see ``curvature``)."""
        return client_spectra(problem, cast("FederatedData", self))

    def curve(self, problem: Posed) -> Operator:
        """u ↦ Σ_k π_k times the curvature of client k, times u."""
        from unpooled.data.curvature_products import weighted_product  # brings numba

        rows = cast("FederatedData", self)
        return partial(weighted_product, rows, curvature_shares(problem, rows))
