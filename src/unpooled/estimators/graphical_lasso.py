"""The graphical lasso: a sparse inverse covariance matrix."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.covariance import EmpiricalCovariance
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from unpooled._ledger import in_words
from unpooled._wording import counted, numbered
from unpooled.data.federated import FederatedData
from unpooled.estimators import fit_inputs
from unpooled.estimators.covariance import pooled_covariance
from unpooled.estimators.sparse_precision import sparse_precision
from unpooled.exact.solve import check_numbers
from unpooled.penalties.inputs import finite_number

ROUNDING = 1e-14  # of a mean: a spread below it is none


class FederatedGraphicalLasso(EmpiricalCovariance):
    """minimise over Θ ≻ 0   tr(SΘ) − log det Θ + α Σ_{i≠j} |Θ_ij|,  S the covariance of the pooled rows.

    The objective is that of ``sklearn.covariance.GraphicalLasso``. S takes one round, whatever α; a client
    with fewer than ``min_rows`` rows refuses to send its part, and then there is no fit. With sample weights
    S is the weighted covariance. ``assume_centered`` takes the means as zero. ``max_iter`` passes over the
    columns at most.

    After ``fit``: ``precision_`` Θ, ``covariance_`` (its inverse up to the gap), ``location_``,
    ``certificate_`` (the gap is certified relative to p), ``rounds_``, ``ledger_``, ``n_iter_``,
    ``clients_``; ``score`` and ``mahalanobis`` as in scikit-learn.
    """

    store_precision = True

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        assume_centered: bool = False,
        tol: float = 1e-8,
        max_iter: int = 100,
        min_rows: int = 10,
        engine: Any = None,
    ):
        self.alpha = alpha
        self.assume_centered = assume_centered
        self.tol = tol
        self.max_iter = max_iter
        self.min_rows = min_rows
        self.engine = engine

    def fit(self, X: Any, y: Any = None, clients: Any = None, sample_weight: Any = None) -> Self:
        """Fit to the rows of all clients; see ``FederatedEstimator.fit``. y is not used."""
        data = self._gather(X, clients, sample_weight)
        alpha = finite_number("alpha", self.alpha, 0.0)
        check_numbers(self.tol, self.max_iter, self.min_rows)
        found = pooled_covariance(data, bool(self.assume_centered), self.min_rows, self.engine)
        constant = np.flatnonzero(np.diag(found.S) <= np.square(ROUNDING * found.mean))
        if constant.size:
            raise ValueError(f"column {constant[0]} is constant: its precision is infinite; leave it out")
        solved = sparse_precision(found.S, alpha, self.tol, self.max_iter)
        self.covariance_, self.precision_, self.location_ = solved.covariance, solved.precision, found.mean
        self.certificate_, self.n_iter_ = solved.certificate, solved.passes
        self.ledger_, self.rounds_ = found.ledger, found.ledger.rounds
        self.clients_, self._n_rows = data.ids, data.n_rows
        if not solved.certificate.relative <= self.tol:
            passes = numbered(solved.passes, "pass", "passes")
            warnings.warn(
                f"the graphical lasso stopped after {passes} with a duality gap of "
                f"{solved.certificate.relative:.2g} of its scale, above tol={self.tol:g}: raise max_iter, "
                "tol or alpha",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _gather(self, X: Any, clients: Any, sample_weight: Any) -> FederatedData:
        if isinstance(X, FederatedData):
            data = fit_inputs.from_federated(self, X, None, clients, sample_weight)
            if len(data.row_shape) != 1:
                raise ValueError(f"a covariance needs rows that are vectors, got shape {data.row_shape}")
            return data
        X = fit_inputs.validated(self, X, dtype=np.float64, order="C", ensure_min_samples=2)
        rows = fit_inputs.with_clients(self, X, np.zeros(len(X)), clients, sample_weight)
        return rows.federated()[0]

    def summary(self) -> str:
        """The fit in a few lines of text."""
        check_is_fitted(self)
        p, sites = self.n_features_in_, counted(len(self.clients_), "client")
        size = f"{counted(self._n_rows, 'row')} × {counted(p, 'feature')}"
        edges = f"{np.count_nonzero(np.triu(self.precision_, 1))} of {counted(p * (p - 1) // 2, 'edge')}"
        ended = "reached" if self.certificate_.relative <= self.tol else "NOT reached"
        return "\n".join(
            [
                f"{type(self).__name__}: {size} of {sites}, alpha = {self.alpha:g}",
                f"  {edges}; objective {self.certificate_.objective:.10g}",
                f"  {self.certificate_}; tolerance {self.tol:g} {ended} in "
                + numbered(self.n_iter_, "pass", "passes"),
                f"  {self.ledger_}",
                f"  left the sites: {in_words(self.ledger_.kinds)}",
            ]
        )
