"""Sparse logistic regression, binary and multinomial, with C given or chosen by cross-validation."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets

from unpooled.data.federated import FederatedData
from unpooled.estimators import fit_inputs
from unpooled.estimators.classes import agree, class_factors
from unpooled.estimators.cross_validated import CrossValidated
from unpooled.estimators.linear import FederatedLinearModel
from unpooled.exact.cross_validation import CrossValidation
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
            rows = fit_inputs.rows_of(fit_inputs.from_federated(self, X, y, clients, sample_weight))
        else:
            rows = fit_inputs.from_arrays(self, X, y, clients, sample_weight, numeric=False)
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


@dataclass(eq=False, repr=False)
class FederatedLogisticRegressionCV(CrossValidated, LogisticModel):
    """``FederatedLogisticRegression`` with C by the held-out log loss.

    The path is one of α = 1/(CΣs), the penalty beside the mean loss, so that it means the same for folds of
    any size: minimise (1/Σs) Σ_i s_i ℓ_i + α(ρ‖w‖₁ + (1 − ρ)/2·‖w‖²). ``alpha_`` is the chosen one, ``C_``
    that of all rows; ``Cs``, where given, takes the place of the path. The held-out losses are
    ``log_loss_path_`` (α, fold), of α from the largest down (``alphas_``, ``Cs_``). With ``class_weight``
    rows weigh in them as they do in the fit. For the other parameters see ``CrossValidated``,
    ``FederatedLogisticRegression`` and ``FederatedLinearModel``.
    """

    _: KW_ONLY
    Cs: Any = None

    def _lambdas(self, data: FederatedData) -> Float | None:
        if self.Cs is None:
            if self.l1_ratio == 0.0:
                raise ValueError("l1_ratio=0 makes no coefficient zero, so no C is the smallest: give Cs")
            return None
        Cs = np.asarray(self.Cs, dtype=np.float64)
        if Cs.ndim != 1 or not Cs.size or not (np.isfinite(Cs) & (Cs > 0.0)).all():
            raise ValueError(f"Cs must be positive numbers, got {self.Cs!r}")
        return np.asarray(1.0 / (Cs * self._total))

    def _solve(self, problem: Problem, data: FederatedData, folds: Any) -> Fit:
        result = self._cross_validate(problem, data, folds)
        fit = self._keep_cross_validation(problem, result)
        self.C_, self.Cs_ = 1.0 / (self.alpha_ * self._total), 1.0 / (self.alphas_ * self._total)
        return replace(fit, ledger=self._agreement + fit.ledger)

    def _keep_losses(self, result: CrossValidation) -> None:
        self.log_loss_path_ = result.losses

    def _held_out(self, mean: float, se: float) -> str:
        return f"mean held-out log loss {mean:.6g} ± {se:.2g} (log_loss_path_ over all rows)"
