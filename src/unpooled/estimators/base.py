"""What the estimators share: rows become federated data, ``solve`` fits them, attributes tell how it went.

An estimator says which problem it is (``_loss``, ``_penalty``, ``_lam``) and lists its parameters as fields,
from which ``dataclass`` writes the ``__init__`` that scikit-learn reads; everything else is here:

    fit       _gather: what the user gave → FederatedData
              _folds: which rows are left out together, where α is chosen
              _prepare: the data that will be solved
              _solve: rounds, until the certificate is small enough
              _keep: the attributes that end in an underscore
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from unpooled._ledger import Ledger
from unpooled._wording import counted
from unpooled.data.federated import FederatedData
from unpooled.estimators import fit_inputs
from unpooled.exact.certificate import Certificate
from unpooled.exact.fit import Fit
from unpooled.exact.solve import solve
from unpooled.kernels.arrays import Array, Float
from unpooled.penalties.inputs import finite_number
from unpooled.problem import Problem


@dataclass(eq=False, repr=False, kw_only=True)
class FederatedEstimator(BaseEstimator, ABC):
    """The base of all estimators that ``solve`` fits. The parameters they share:

    fit_intercept : whether there is an intercept, which is never penalised.
    solver : "auto", "sufficient_statistics", "prox_newton", "anderson", "fista", or a solver object.
    tol : stop when the certificate's gap is at most so large a part of its scale (see ``Certificate``).
    max_rounds : stop after so many rounds, with a ConvergenceWarning.
    engine : where clients run; in this process where None.

    After ``fit``: ``coef_``, ``intercept_``; ``certificate_``, the proof of how far the model is from the
    optimum; ``rounds_`` (also ``n_iter_``) and ``ledger_``, what crossed the network; ``solver_`` and
    ``notes_``, what was chosen and what was refused; ``problem_``, what was solved; ``fit_result_``, all of
    it; ``clients_``, the ids.
    """

    fit_intercept: bool = True
    solver: Any = "auto"
    tol: float = 1e-8
    max_rounds: int = 500
    engine: Any = None

    coef_: Float = field(init=False)
    intercept_: Any = field(init=False)
    certificate_: Certificate = field(init=False)
    ledger_: Ledger = field(init=False)
    fit_result_: Fit = field(init=False)
    n_features_in_: int = field(init=False)

    def fit(self, X: Any, y: Any = None, clients: Any = None, sample_weight: Any = None) -> Self:
        """Fit the pooled model without pooling.

        Parameters
        ----------
        X : (n, p) array, frame or CSR matrix; or a FederatedData, which brings everything else with it.
        y : (n,) targets.
        clients : (n,) ids, integers or strings: whose row it is. None: all rows have one owner.
        sample_weight : (n,) numbers ≥ 0; a row of weight zero is as if it were not there.
        """
        data, number = self._gather(X, y, clients, sample_weight)
        folds = self._folds(data, number)
        data = self._prepare(data)
        self._keep(self._solve(self._problem(data), data, folds), data)
        return self

    def summary(self) -> str:
        """The fit in a few lines: non-zeros, certificate, rounds, bytes, which statistics left the sites."""
        check_is_fitted(self)
        rows, sites = counted(self._n_rows, "row"), counted(len(self.clients_), "client")
        head = f"{type(self).__name__}: {rows} × {counted(self.n_features_in_, 'feature')} of {sites}"
        return f"{head}\n{self.fit_result_.summary()}"

    def _gather(self, X: Any, y: Any, clients: Any, sample_weight: Any) -> tuple[FederatedData, Array]:
        """The data, and for each of its rows the number that the row has in the caller's order."""
        if isinstance(X, FederatedData):
            data = fit_inputs.from_federated(self, X, y, clients, sample_weight)
            return data, np.arange(data.n_rows)
        return fit_inputs.from_arrays(self, X, y, clients, sample_weight).federated()

    def _folds(self, data: FederatedData, number: Array) -> Any:
        """How the rows are cross-validated, as ``cross_validate`` takes it; None where nothing is chosen."""
        return None

    def _prepare(self, data: FederatedData) -> FederatedData:
        """The data that will be solved, one row of p features each, whatever shape they came in."""
        return data

    @abstractmethod
    def _loss(self, data: FederatedData) -> Any:
        """The smooth part."""

    @abstractmethod
    def _penalty(self, lam: float) -> Any:
        """The penalty at λ."""

    @abstractmethod
    def _lam(self, data: FederatedData) -> float:
        """λ, where the loss is a mean over rows."""

    def _problem(self, data: FederatedData) -> Problem:
        return self._stated(self._loss(data), self._penalty(self._lam(data)))

    def _stated(self, loss: Any, penalty: Any) -> Problem:
        return Problem(loss, penalty, bool(self.fit_intercept))

    def _options(self) -> dict[str, Any]:
        """What ``solve`` is told."""
        names = ("solver", "tol", "max_rounds", "engine")
        return {name: getattr(self, name) for name in names}

    def _solve(self, problem: Problem, data: FederatedData, folds: Any) -> Fit:
        return solve(problem, data, **self._options())

    def _keep(self, fit: Fit, data: FederatedData) -> None:
        """Set the attributes of a fitted estimator."""
        self._set_model(*self._model(fit))
        self.certificate_, self.ledger_ = fit.certificate, fit.ledger
        self.rounds_ = self.n_iter_ = fit.rounds
        self.solver_, self.notes_, self.problem_ = fit.solver, list(fit.notes), fit.problem
        self.fit_result_ = fit
        self.clients_, self._n_rows = data.ids, data.n_rows
        self._data = data

    def _model(self, fit: Fit) -> tuple[Float, Any]:
        """Coefficients and intercept for the rows as they came."""
        return fit.w, fit.intercept

    def _set_model(self, w: Float, intercept: Any) -> None:
        self.coef_ = w
        self.intercept_ = 0.0 if intercept is None else float(intercept)

    def _margins(self, X: Any) -> Float:
        """x·w + b for each row."""
        check_is_fitted(self)
        X = fit_inputs.features(self, X)
        return np.asarray(X @ self.coef_.ravel() + self.intercept_)

    def __getstate__(self) -> dict[str, Any]:
        """A model may travel; the rows it was fitted to do not go with it."""
        state = dict(super().__getstate__())
        state.pop("_data", None)
        if "fit_result_" in state:  # nor do Gram matrices
            state["fit_result_"] = replace(state["fit_result_"], statistics={})
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class SharesGramMatrices(FederatedEstimator):
    """An estimator whose clients may be asked for second-order statistics. The parameters that this adds:

    min_rows : a client with fewer rows, or with a column in which fewer rows stand out from the rest,
        refuses to send Gram matrices and Hessians; then gradients are used. 0 lets every client send.
    second_order : whether Gram matrices and Hessians may be asked for at all.
    """

    min_rows: int = 10
    second_order: bool = True

    def _options(self) -> dict[str, Any]:
        return super()._options() | {"min_rows": self.min_rows, "second_order": self.second_order}


@dataclass(eq=False, repr=False)
class WithAlpha:
    """The parameter α of a penalty beside a mean over rows."""

    alpha: float = 1.0

    def _lam(self, data: FederatedData) -> float:
        return finite_number("alpha", self.alpha, 0.0)


class FederatedRegressor(RegressorMixin, FederatedEstimator):
    """A regressor whose prediction is x·w + b; ``score`` is R²."""

    def predict(self, X: Any) -> Float:
        """x·w + b for each row of X."""
        return self._margins(X)
