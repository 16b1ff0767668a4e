"""Estimators of a coefficient per feature: preprocessing without pooling before the fit, intervals after."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from unpooled.data.federated import FederatedData
from unpooled.estimators import fit_inputs
from unpooled.estimators.base import SharesGramMatrices
from unpooled.exact.fit import Fit
from unpooled.kernels.arrays import Float
from unpooled.preprocessing import prepare
from unpooled.preprocessing.prepared import Prepared
from unpooled.preprocessing.site_intercepts import SiteIntercepts
from unpooled.preprocessing.transform import filled
from unpooled.problem import Problem

if TYPE_CHECKING:
    from unpooled.inference.result import Inference


@dataclass(eq=False, repr=False, kw_only=True)
class FederatedLinearModel(SharesGramMatrices):
    """A linear model x·w + b, with these parameters besides those of its base classes.

    standardise : whether the penalty sees columns whose observed values have mean zero and variance one, over
        the rows of all clients (one round). ``coef_`` and ``intercept_`` are for the rows as they came.
        Sparse rows are only scaled.
    missing : "refuse", or "mean": NaN becomes the mean of the column over all clients (the same round), also
        in ``predict``, whether or not a row of ``fit`` misses a value. With ``standardise``, columns are
        scaled by what was observed, and filled then: one of which a share q was observed has variance q, and
        its penalty is 1/√q times that after ``SimpleImputer`` and ``StandardScaler``, which scale the filled
        column to variance one.
    unpenalised : columns, by number or name, whose coefficients the penalty leaves alone.
    site_intercepts : whether each client has an intercept of its own. ``intercept_`` is then their weighted
        mean, ``site_intercepts_`` has them all, and ``predict(X, clients=…)`` uses them (one round more); a
        client that took no part in the fit gets the mean, with a warning if its id is written like another's
        ("1224" for 1224).
    """

    standardise: Any = False
    missing: str = "refuse"
    site_intercepts: bool = False

    _scalings: ClassVar[tuple[Any, ...]] = (False, True)

    site_intercepts_: SiteIntercepts | None = field(init=False)
    _prepared: Prepared = field(init=False)
    _fill: Float | None = field(init=False)

    def _prepare(self, data: FederatedData) -> FederatedData:
        if self.standardise not in self._scalings:
            known = " or ".join(map(repr, self._scalings))
            raise ValueError(f"standardise must be {known} here, got {self.standardise!r}")
        free = getattr(self, "unpenalised", ())
        self._prepared = prepare(
            data,
            center=bool(self.standardise and self._has_intercept and not data.is_sparse),
            scale=bool(self.standardise),
            missing=self.missing,
            site_intercepts=bool(self.site_intercepts),
            unpenalised=() if free is None else free,
            engine=self.engine,
        )
        return self._prepared.data

    @property
    def _has_intercept(self) -> bool:
        return bool(self.fit_intercept or self.site_intercepts)

    def _stated(self, loss: Any, penalty: Any) -> Problem:
        return self._prepared.problem(loss, penalty, bool(self.fit_intercept))

    def _keep(self, fit: Fit, data: FederatedData) -> None:
        prepared = self._prepared
        self._fill = None if prepared.fill is None else prepared.fill.ravel()
        self.site_intercepts_ = None
        ledger = prepared.ledger + fit.ledger
        if self.site_intercepts:
            self.site_intercepts_ = prepared.site_intercepts(fit.w, fit.problem, engine=self.engine)
            ledger += self.site_intercepts_.ledger
        super()._keep(replace(fit, ledger=ledger, notes=[*prepared.notes, *fit.notes]), data)

    def _model(self, fit: Fit) -> tuple[Float, Any]:
        w, intercept = self._prepared.back(fit.w, fit.intercept, is_path=False)
        return w, intercept if self.site_intercepts_ is None else self.site_intercepts_.unknown

    def inference(self, columns: Any = None, *, level: float = 0.95, **options: Any) -> Inference:
        """Debiased estimates, standard errors, p-values and intervals, in the units of the input.

        Runs ``inference.debiased_lasso``, for squared and binary logistic models. ``columns`` are numbers or
        names, None for all; ``options`` are passed on, such as ``covariance="sandwich"``. If the fit's
        statistics do not suffice, this asks the clients again, so it needs the rows passed to ``fit``; a
        pickled model does not contain them.
        """
        from unpooled.inference import debiased_lasso

        check_is_fitted(self)
        if not hasattr(self, "_data"):
            raise ValueError("a pickled model does not contain its rows: fit it again where the rows are")
        given = {"min_rows": self.min_rows, "engine": self.engine, **options}
        found = debiased_lasso(
            self.problem_, self._data, self.fit_result_, columns=columns, level=level, **given
        )
        scale = self._prepared.scale.ravel()[found.columns]
        return replace(
            found,
            coef=found.coef / scale,
            estimate=found.estimate / scale,
            standard_error=found.standard_error / scale,
        )

    def confidence_intervals(self, level: float = 0.95, columns: Any = None, **options: Any) -> Float:
        """The lower and upper ends, (n, 2), one row for each of ``columns``; see ``inference``."""
        return np.asarray(self.inference(columns, level=level, **options).interval())

    def _margins(self, X: Any, clients: Any = None) -> Float:
        """x·w + b for each row, (n,), or (n, C) for classes; b is the client's own if it has one."""
        check_is_fitted(self)
        if self._fill is None and isinstance(X, FederatedData) and X.has_missing:
            raise ValueError(
                "X has missing values: missing='mean' fills them with the means over all clients"
            )
        X = fit_inputs.features(self, X)
        if self._fill is not None:
            X = filled(X, self._fill)
        Z = np.asarray(X @ self.coef_.T)
        if clients is None or self.site_intercepts_ is None:
            return np.asarray(Z + self.intercept_)
        fit_inputs.check_clients(clients, X.shape[0])
        return np.asarray(Z + self.site_intercepts_.of_rows(clients).reshape(Z.shape))

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("_prepared", None)  # contains rows
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "mean"
        return tags


class FederatedLinearRegressor(RegressorMixin, FederatedLinearModel):
    """A regressor whose prediction is x·w + b; ``score`` is R²."""

    __metadata_request__score = {"clients": False}  # noqa: RUF012  # until set_score_request asks for them

    def predict(self, X: Any, clients: Any = None) -> Float:
        """x·w + b for each row of X; ``clients`` says whose row it is, where there are site intercepts."""
        return self._margins(X, clients)

    def score(self, X: Any, y: Any, sample_weight: Any = None, clients: Any = None) -> float:
        """R² of ``predict(X, clients)``."""
        return float(r2_score(y, self.predict(X, clients), sample_weight=sample_weight))
