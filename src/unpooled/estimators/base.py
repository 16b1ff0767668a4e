"""The base class of the estimators: convert rows to federated data, ``solve``, set the fitted attributes.

A subclass defines its problem (``_loss``, ``_penalty``, ``_lam``) and lists its parameters as fields, from
which ``dataclass`` generates the ``__init__`` that scikit-learn inspects. ``fit`` calls, in this order:

    _gather   convert the user's input to FederatedData
    _folds    assign rows to cross-validation folds, if α is chosen by cross-validation
    _prepare  scale columns and fill in missing values
    _solve    run rounds until the certificate is within ``tol``
    _keep     set the attributes that end in an underscore
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
    """Base class of the estimators fitted by ``solve``.

    Parameters
    ----------
    fit_intercept : whether to fit an intercept, which is never penalised.
    solver : "auto", "sufficient_statistics", "prox_newton", "anderson", "fista", or a solver object.
    tol : stop when the certificate's gap relative to its scale is at most ``tol`` (see ``Certificate``).
    max_rounds : stop after this many rounds, with a ConvergenceWarning.
    engine : the engine that runs the clients; None for this process.

    Attributes
    ----------
    coef_, intercept_ : the model.
    certificate_ : a bound on the distance to the optimum.
    rounds_ (also n_iter_), ledger_ : rounds of communication, and all traffic.
    solver_, notes_ : the solver used; remarks on choices and refusals.
    problem_, fit_result_ : the problem solved, and the result of ``solve``.
    clients_ : the client ids.
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
        """Fit the model of the pooled rows without pooling them.

        Parameters
        ----------
        X : (n, p) array, data frame or CSR matrix; or a FederatedData, which includes the other arguments.
        y : (n,) targets.
        clients : (n,) client ids, integers or strings. None for a single client.
        sample_weight : (n,) numbers ≥ 0. Rows of weight zero are dropped.
        """
        data, number = self._gather(X, y, clients, sample_weight)
        folds = self._folds(data, number)
        data = self._prepare(data)
        self._keep(self._solve(self._problem(data), data, folds), data)
        return self

    def summary(self) -> str:
        """A text summary: non-zeros, certificate, rounds, bytes, and the statistics that left the sites."""
        check_is_fitted(self)
        rows, sites = counted(self._n_rows, "row"), counted(len(self.clients_), "client")
        head = f"{type(self).__name__}: {rows} × {counted(self.n_features_in_, 'feature')} of {sites}"
        return f"{head}\n{self.fit_result_.summary()}"

    def _gather(self, X: Any, y: Any, clients: Any, sample_weight: Any) -> tuple[FederatedData, Array]:
        """The data, and the position of each of its rows in the caller's order."""
        if isinstance(X, FederatedData):
            data = fit_inputs.from_federated(self, X, y, clients, sample_weight)
            return data, np.arange(data.n_rows)
        return fit_inputs.from_arrays(self, X, y, clients, sample_weight).federated()

    def _folds(self, data: FederatedData, number: Array) -> Any:
        """The folds, as ``cross_validate`` accepts them; None without cross-validation."""
        return None

    def _prepare(self, data: FederatedData) -> FederatedData:
        """The data to solve, with rows of p features."""
        return data

    @abstractmethod
    def _loss(self, data: FederatedData) -> Any:
        """The loss."""

    @abstractmethod
    def _penalty(self, lam: float) -> Any:
        """The penalty at λ."""

    @abstractmethod
    def _lam(self, data: FederatedData) -> float:
        """λ beside a loss that is a mean over rows."""

    def _problem(self, data: FederatedData) -> Problem:
        return self._stated(self._loss(data), self._penalty(self._lam(data)))

    def _stated(self, loss: Any, penalty: Any) -> Problem:
        return Problem(loss, penalty, bool(self.fit_intercept))

    def _options(self) -> dict[str, Any]:
        """The keyword arguments for ``solve``."""
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
        """Coefficients and intercept in the units of the input."""
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
        """Exclude rows and Gram matrices from pickles."""
        state = dict(super().__getstate__())
        state.pop("_data", None)
        if "fit_result_" in state:
            state["fit_result_"] = replace(state["fit_result_"], statistics={})
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class SharesGramMatrices(FederatedEstimator):
    """An estimator that may use second-order statistics.

    Parameters
    ----------
    min_rows : a client with fewer rows, or with a column in which fewer rows differ from the rest, refuses to
        send Gram matrices and Hessians, and gradients are used instead. 0 disables refusals.
    second_order : whether to use Gram matrices and Hessians at all.
    """

    min_rows: int = 10
    second_order: bool = True

    def _options(self) -> dict[str, Any]:
        return super()._options() | {"min_rows": self.min_rows, "second_order": self.second_order}


@dataclass(eq=False, repr=False)
class WithAlpha:
    """The parameter α, the weight of the penalty beside a mean over rows."""

    alpha: float = 1.0

    def _lam(self, data: FederatedData) -> float:
        return finite_number("alpha", self.alpha, 0.0)


class FederatedRegressor(RegressorMixin, FederatedEstimator):
    """A regressor whose prediction is x·w + b; ``score`` is R²."""

    def predict(self, X: Any) -> Float:
        """x·w + b for each row of X."""
        return self._margins(X)
