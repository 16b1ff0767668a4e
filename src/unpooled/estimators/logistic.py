"""Sparse logistic regression, binary and multinomial."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets

from unpooled.data.federated import FederatedData
from unpooled.estimators import gathered
from unpooled.estimators.classes import agree, class_factors
from unpooled.estimators.linear import FederatedLinearModel
from unpooled.exact.fit import Fit
from unpooled.kernels.arrays import Array, Float
from unpooled.losses import Logistic, Softmax
from unpooled.penalties import ElasticNet
from unpooled.penalties.inputs import positive_number
from unpooled.problem import Problem


@dataclass(eq=False, repr=False, kw_only=True)
class LogisticModel(ClassifierMixin, FederatedLinearModel):
    """A classifier by logistic or multinomial regression, whatever chooses C."""

    __metadata_request__score = {"clients": False}  # noqa: RUF012  # until set_score_request asks for them

    l1_ratio: float = 1.0
    class_weight: Any = None
    unpenalised: Any = ()

    def _gather(self, X: Any, y: Any, clients: Any, sample_weight: Any) -> tuple[FederatedData, Array]:
        if isinstance(X, FederatedData):
            rows = gathered.rows_of(gathered.from_federated(self, X, y, clients, sample_weight))
        else:
            rows = gathered.from_arrays(self, X, y, clients, sample_weight, numeric=False)
        check_classification_targets(rows.y)
        agreed = agree(rows)
        factors = class_factors(self.class_weight, agreed)
        self.classes_, self._agreement = agreed.classes, agreed.ledger
        rows = rows.with_targets(agreed.codes, None if factors is None else factors[agreed.codes])
        self._total = rows.total()
        return rows.federated()

    def _loss(self, data: FederatedData) -> Any:
        return Logistic() if len(self.classes_) == 2 else Softmax(n_classes=len(self.classes_))

    def _penalty(self, lam: float) -> Any:
        return ElasticNet(lam, self.l1_ratio)

    def _solve(self, problem: Problem, data: FederatedData, folds: Any) -> Fit:
        fit = super()._solve(problem, data, folds)
        return replace(fit, ledger=self._agreement + fit.ledger)

    def _set_model(self, w: Float, intercept: Any) -> None:
        self.coef_ = np.ascontiguousarray(np.atleast_2d(w.T))
        self.intercept_ = np.zeros(len(self.coef_)) if intercept is None else np.atleast_1d(intercept)

    def decision_function(self, X: Any, clients: Any = None) -> Float:
        """x·w + b, shape (n,), for two classes; (n, C) for more. ``clients`` as in ``predict``."""
        Z = self._margins(X, clients)
        return Z[:, 0] if Z.shape[1] == 1 else Z

    def predict(self, X: Any, clients: Any = None) -> Array:
        """The most probable class of each row; ``clients`` says whose row it is, for site intercepts."""
        Z = self.decision_function(X, clients)
        return np.asarray(self.classes_[(Z > 0).astype(np.intp) if Z.ndim == 1 else Z.argmax(axis=1)])

    def score(self, X: Any, y: Any, sample_weight: Any = None, clients: Any = None) -> float:
        """The share of rows whose class ``predict(X, clients)`` finds."""
        return float(accuracy_score(y, self.predict(X, clients), sample_weight=sample_weight))

    def predict_proba(self, X: Any, clients: Any = None) -> Float:
        """The probabilities of the classes, (n, C), in the order of ``classes_``."""
        Z = self.decision_function(X, clients)
        return np.column_stack([expit(-Z), expit(Z)]) if Z.ndim == 1 else np.asarray(softmax(Z, axis=1))

    def predict_log_proba(self, X: Any, clients: Any = None) -> Float:
        """The logarithms of the probabilities, also where these are too small to show."""
        Z = self.decision_function(X, clients)
        Z = np.column_stack([np.zeros_like(Z), Z]) if Z.ndim == 1 else Z
        Z = Z - Z.max(axis=1, keepdims=True)
        return np.asarray(Z - np.log(np.exp(Z).sum(axis=1, keepdims=True)))


@dataclass(eq=False, repr=False)
class FederatedLogisticRegression(LogisticModel):
    """minimise  C Σ_i s_i ℓ(x_i, y_i; w, b) + ρ‖w‖₁ + (1 − ρ)/2·‖w‖²,  ρ = ``l1_ratio``,

    ℓ the negative log-likelihood: log(1 + e^{−yz}) for two classes, log Σ_c e^{z_c} − z_y (multinomial) for
    more. The objective and its scaling are those of ``sklearn.linear_model.LogisticRegression``, sample
    weights included. ``class_weight`` multiplies them: "balanced" with the counts of all clients together,
    or a dictionary. Labels may be of any kind; clients agree on them in a round of its own, which is in the
    ledger, and a client may have rows of one class only. ``coef_`` is (1, p) or (C, p). The other parameters
    and the fitted attributes are those of ``FederatedLinearModel``; ``problem_`` is the same divided by CΣs.
    """

    C: float = 1.0

    def _lam(self, data: FederatedData) -> float:
        return 1.0 / (positive_number("C", self.C) * self._total)
