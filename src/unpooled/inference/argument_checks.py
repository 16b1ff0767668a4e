"""Checks on the arguments of inference: loss, row weights, fit, columns, and refusals by clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unpooled._validation import closest, is_number
from unpooled.data.federated import FederatedData
from unpooled.exact.base import reasons, refused
from unpooled.exact.fit import Fit
from unpooled.kernels.arrays import Array, Arrays
from unpooled.problem import BoundProblem, Problem


def check_model(problem: BoundProblem, what: str) -> None:
    """Refuse losses without a noise model, and coefficients that are not one vector."""
    loss, penalty = problem.problem.loss, problem.problem.penalty
    if problem.linear is None or not problem.linear.has_known_noise:
        raise ValueError(
            f"{what} supports Squared and Logistic, which have a noise model, not {type(loss).__name__}: "
            "stability_selection and influence accept every loss"
        )
    if not getattr(penalty, "counts_nonzeros", True) or len(problem.layout.shape) > 1:
        raise ValueError(f"{what} needs one vector of coefficients, not a matrix")


def refuse_site_intercepts(problem: Problem, what: str) -> None:
    """Refuse models with site intercepts."""
    if problem.has_site_intercepts:
        raise ValueError(f"{what} does not support site intercepts: use one intercept (intercept=True)")


def check_rows(data: FederatedData, what: str) -> None:
    """Refuse rows of unequal weight: a weight alone does not determine a row's noise."""
    share = data.row_weights
    if np.ptp(share) > 1e-9 * float(share.mean()):
        cause = "sample_weight" if data.sample_weight is not None else "the clients' weights"
        raise ValueError(
            f"{what} needs rows of equal weight, but {cause} makes them differ: standard errors would depend "
            "on what the weights mean (counts, precisions, sampling). Drop the weights, or repeat rows"
        )


def check_fit(fit: Any, problem: BoundProblem, data: FederatedData) -> None:
    """Refuse a fit of another model, or of another number of rows."""
    if not isinstance(fit, Fit):
        raise TypeError(f"fit must be the result of solve, got {type(fit).__name__}")
    own = fit.problem
    if type(own.loss) is not type(problem.problem.loss) or own.intercept != problem.problem.intercept:
        raise ValueError("the fit is of another problem: the loss and the intercept must be the same")
    if fit.w.shape != problem.layout.shape:
        raise ValueError(
            f"the fit has coefficients of shape {fit.w.shape}, the data needs {problem.layout.shape}"
        )
    if fit.statistics and int(fit.statistics["rows"]) != data.n_rows:
        raise ValueError(f"the fit saw {int(fit.statistics['rows'])} rows, but the data has {data.n_rows}")


def check_answers(total: Arrays, n_clients: int, min_rows: int, what: str) -> None:
    """Raise if a client refused to send second-order statistics, for which there is no substitute."""
    check_refused(refused(total), n_clients, min_rows, what)


def check_refused(counts: Array, n_clients: int, min_rows: int, what: str) -> None:
    """As ``check_answers``, from the counts of clients with few rows and of clients with rare values."""
    why = reasons(counts, n_clients, min_rows)
    if why:
        raise ValueError(
            f"{what} needs Gram matrices or Hessians, which were refused because {why}: "
            f"they could reveal rows. min_rows={min_rows} sets the limit; merge sites or drop columns"
        )


def feature_names(data: FederatedData) -> tuple[str, ...]:
    """The feature names; x0, x1, … if the data has none."""
    return data.feature_names or tuple(f"x{j}" for j in range(data.n_features))


def column_numbers(columns: Any, data: FederatedData) -> Array:
    """Columns given by number or by name, as numbers; None for all."""
    p, names = data.n_features, feature_names(data)
    if columns is None:
        return np.arange(p)
    given: Sequence[Any] = [columns] if isinstance(columns, str | int | np.integer) else list(columns)
    numbers = []
    for column in given:
        if isinstance(column, str):
            if column not in names:
                raise ValueError(f"there is no feature {column!r}{closest(column, names)}")
            numbers.append(names.index(column))
        elif is_number(column) and column == int(column) and -p <= column < p:
            numbers.append(int(column) % p)
        else:
            raise ValueError(f"columns must be names or numbers below {p}, got {column!r}")
    if not numbers or len(set(numbers)) < len(numbers):
        raise ValueError(f"columns must name at least one feature and none twice, got {columns!r}")
    return np.array(numbers, dtype=np.int64)


def check_share(name: str, value: Any) -> float:
    """A number strictly between 0 and 1."""
    if not is_number(value) or not 0.0 < value < 1.0:
        raise ValueError(f"{name} must lie between 0 and 1, got {value!r}")
    return float(value)
