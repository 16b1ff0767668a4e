"""The base class of estimators that choose α by cross-validation."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from unpooled._wording import counted
from unpooled.data.federated import FederatedData
from unpooled.estimators.linear import FederatedLinearModel
from unpooled.estimators.splits import is_splitter, of_splits, of_splitter
from unpooled.exact.cross_validation import CrossValidation, cross_validate
from unpooled.exact.fit import Fit
from unpooled.kernels.arrays import Array, Float
from unpooled.problem import Problem


@dataclass(eq=False, repr=False, kw_only=True)
class CrossValidated(FederatedLinearModel):
    """Choose α by the held-out loss.

    Parameters
    ----------
    n_alphas, eps : size of a logarithmic grid from the smallest α that makes every coefficient zero down to
        ``eps`` times that value; ``alphas`` gives the values instead.
    cv : the number of folds, into which each client splits its own rows; "sites", to leave one client out at
        a time; an array with the fold of each row; a scikit-learn splitter that tests every row once, such as
        ``KFold(5)``, ``StratifiedKFold(5)`` or ``GroupKFold(5)`` (the groups are the clients); or a list of
        (train, test) splits.
    rule : "min" for the α of least mean loss, "1se" for the largest α within one standard error of it.
    seed : seed of the random folds.
    fold_rows : the least number of rows of a client in a fold. A client with too few rows uses fewer folds,
        or a single one. ``fold_rows=min_rows`` saves rounds with small clients.
    standardise : True scales columns once, over all rows, so that held-out rows have a part in the scale, as
        in ``make_pipeline(StandardScaler(), LassoCV())``. "fold" scales them anew over the training rows of
        each fold, as glmnet does (curves differ by 0.1 to 8 %), and over all rows for the final fit. It
        costs no further round, and needs sufficient statistics: the squared loss, no site intercepts. With
        ``missing="mean"`` a fold's scale is that of its filled columns, and that of the final fit is that of
        what was observed.

    After ``fit`` also ``alpha_``, ``alphas_``, ``cv_result_`` and what was measured on the held-out rows,
    (α, fold): ``mse_path_``, mean squared errors as scikit-learn has them, where the loss is squared;
    ``log_loss_path_`` for classifiers. ``cv_result_.losses``, ``mean`` and ``se`` are those of the loss in
    the objective, which for the squared loss is half the squared error. The folds share their rounds; the
    model is fitted to all rows at ``alpha_``. The result is that of cross-validating the pooled rows with the
    same folds, of which each counts by its rows: where folds differ in size, scikit-learn, which counts them
    alike, may choose another α from the same losses.
    """

    n_alphas: int = 100
    eps: float = 1e-3
    cv: Any = 5
    rule: str = "min"
    seed: int = 0
    fold_rows: int = 0

    _scalings: ClassVar[tuple[Any, ...]] = (False, True, "fold")

    def _lam(self, data: FederatedData) -> float:
        return 1.0  # unused: the path sets its own

    def _solve(self, problem: Problem, data: FederatedData, folds: Any) -> Fit:
        result = self._cross_validate(problem, data, folds)
        return self._keep_cross_validation(problem, result)

    def _cross_validate(self, problem: Problem, data: FederatedData, folds: Any) -> CrossValidation:
        return cross_validate(
            problem,
            data,
            folds=folds,
            rule=self.rule,
            seed=self.seed,
            lambdas=self._lambdas(data),
            n_lambdas=self.n_alphas,
            ratio=self.eps,
            standardise_folds=self.standardise == "fold",
            fold_rows=self.fold_rows,
            **self._options(),
        )

    @abstractmethod
    def _lambdas(self, data: FederatedData) -> Float | None:
        """The values to choose from; None for the default grid."""

    def _folds(self, data: FederatedData, number: Array) -> Any:
        """``cv`` as ``cross_validate`` accepts it: fold numbers in the order of the data."""
        if isinstance(self.cv, str):
            if self.cv == "sites" and data.n_clients < 2:
                raise ValueError("cv='sites' leaves one client out at a time: two are needed, got 1 client")
            return self.cv
        if is_splitter(self.cv):
            return of_splitter(self.cv, data, number)
        if not hasattr(self.cv, "__len__"):
            if isinstance(self.cv, int | np.integer) and data.n_rows < self.cv:
                raise ValueError(f"cv={self.cv} folds need as many rows, got n_samples={data.n_rows}")
            return self.cv
        folds = of_splits(self.cv) if isinstance(self.cv[0], tuple | list) else np.asarray(self.cv)
        if folds.ndim != 1 or len(folds) <= int(number.max()):
            raise ValueError(f"cv holds {counted(folds.size, 'fold number')}, but one per row is needed")
        return folds[number]

    def _keep_cross_validation(self, problem: Problem, result: CrossValidation) -> Fit:
        self.cv_result_ = result
        self.alpha_, self.alphas_ = result.lam, result.path.lambdas
        self._keep_losses(result)
        (w, intercept), certificate = result.model, result.path.certificates[result.index]
        return Fit(
            problem=result.path.problem.with_lam(result.lam),
            w=w,
            intercept=intercept,
            certificate=certificate,
            converged=certificate.relative <= self.tol,
            tol=self.tol,
            ledger=result.ledger,
            solver=result.path.solver,
            history={},
            notes=[*result.path.notes, self._choice(result)],
        )

    def _keep_losses(self, result: CrossValidation) -> None:
        self.mse_path_ = 2.0 * result.losses  # the squared loss has a half in front

    def _choice(self, result: CrossValidation) -> str:
        """A note on the chosen α."""
        held_out = self._held_out(float(result.mean[result.index]), float(result.se[result.index]))
        return (
            f"alpha = {result.lam:.6g} of {len(result.path.lambdas)} was chosen by rule={result.rule!r} over "
            f"{result.losses.shape[1]} folds: {held_out}."
        )

    def _held_out(self, mean: float, se: float) -> str:
        """The mean held-out loss in words, with its unit."""
        return (
            f"mean held-out squared error {2.0 * mean:.6g} ± {2.0 * se:.2g} (mse_path_ over all rows; "
            "the loss, as the objective has it, is half of that)"
        )


@dataclass(eq=False, repr=False, kw_only=True)
class ChoosesAlpha(CrossValidated):
    """``CrossValidated`` with ``alphas``, the values to choose from."""

    alphas: Any = None

    def _lambdas(self, data: FederatedData) -> Float | None:
        return None if self.alphas is None else np.asarray(self.alphas, dtype=np.float64)
