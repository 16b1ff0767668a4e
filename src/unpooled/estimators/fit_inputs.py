"""What users give ``fit``, checked by scikit-learn's rules, as federated data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight, validate_data

from unpooled._validation import ENCODE, column, sort_rows
from unpooled._wording import counted
from unpooled.data.federated import FederatedData
from unpooled.kernels.arrays import Array, Float

FLOATS = [np.float64, np.float32]


@dataclass(frozen=True, eq=False)
class CheckedRows:
    """Checked rows in the caller's order, less those of weight zero; ``number`` says where they stood."""

    X: Any
    y: Any
    clients: Any
    sample_weight: Float | None
    number: Array
    names: tuple[str, ...] | None = None
    allow_missing: bool = False

    def federated(self) -> tuple[FederatedData, Array]:
        """The rows sorted by client, and the number that each one had."""
        order = sort_rows(self.clients).order
        data = FederatedData.from_arrays(
            self.X,
            self.y,
            self.clients,
            self.sample_weight,
            feature_names=self.names,
            allow_missing=self.allow_missing,
        )
        return data, self.number if order is None else self.number[order]

    def total(self) -> float:
        """Σ s_i; how many rows there are where they have no weights."""
        return float(len(self.number)) if self.sample_weight is None else float(self.sample_weight.sum())

    def with_targets(self, y: Array, factor: Float | None) -> CheckedRows:
        """Other targets, and sample weights times a factor."""
        if factor is None:
            return replace(self, y=y)
        s = factor if self.sample_weight is None else factor * self.sample_weight
        return replace(self, y=y, sample_weight=s)


def from_arrays(
    estimator: Any, X: Any, y: Any, clients: Any, sample_weight: Any, *, numeric: bool = True
) -> CheckedRows:
    """One target (``numeric``: a real number), one client id and perhaps one weight per row of X."""
    rules: dict[str, Any] = {"y_numeric": True, "ensure_min_samples": 1} if numeric else {}
    rules |= {"accept_sparse": "csr", "dtype": FLOATS, "order": "C", "ensure_all_finite": _finite(estimator)}
    try:
        X, y = validated(estimator, X, y, **rules)
    except ValueError as error:
        if not str(error).startswith("Input X contains NaN") or not hasattr(estimator, "missing"):
            raise
        raise ValueError("Input X contains NaN: missing='mean' fills in the means over all clients") from None
    return with_clients(estimator, X, y, clients, sample_weight)


def with_clients(estimator: Any, X: Any, y: Any, clients: Any, sample_weight: Any) -> CheckedRows:
    """Checked X and y with their clients and weights; rows of weight zero are as if they were not there."""
    n = X.shape[0]
    if clients is None:
        clients = np.zeros(n, dtype=np.int64)
    else:
        check_clients(clients, n)
    number, s = np.arange(n), None
    names = getattr(estimator, "feature_names_in_", None)
    if sample_weight is not None:
        s = _check_sample_weight(sample_weight, X, dtype=np.float64)
        if (s < 0.0).any():
            raise ValueError(f"Negative values in sample_weight: row {int(np.argmax(s < 0.0))} has {s.min()}")
        number = np.flatnonzero(s)
        if not number.size:
            raise ValueError("sample_weight is zero for every row: there is nothing to fit")
        if number.size < n:
            X, y, s = X[number], y[number], s[number]
            clients = np.asarray(clients)[number]
    names = None if names is None else tuple(names)
    return CheckedRows(X, y, clients, s, number, names, _finite(estimator) is not True)


def check_clients(clients: Any, n: int) -> None:
    """One id per row."""
    if isinstance(clients, str) or not hasattr(clients, "__len__"):
        raise TypeError(f"clients must hold one id per row, got {clients!r}")
    if len(clients) != n:
        raise ValueError(f"X has {n} rows but clients has {len(clients)} ids: one per row is needed")


def _finite(estimator: Any) -> bool | str:
    """What scikit-learn is to ask of the numbers in X."""
    return "allow-nan" if estimator.__sklearn_tags__().input_tags.allow_nan else True


def from_federated(
    estimator: Any, data: FederatedData, y: Any, clients: Any, sample_weight: Any
) -> FederatedData:
    """Data that are federated already; they bring targets, clients and weights with them."""
    for name, given in (("y", y), ("clients", clients), ("sample_weight", sample_weight)):
        if given is not None:
            raise ValueError(f"X is a FederatedData, which brings its own {name}: leave {name} out")
    for name in ("feature_names_in_", "n_features_in_"):
        if hasattr(estimator, name):
            delattr(estimator, name)
    estimator.n_features_in_ = data.n_features
    if data.feature_names is not None:
        estimator.feature_names_in_ = np.array(data.feature_names, dtype=object)
    return data


def rows_of(data: FederatedData) -> CheckedRows:
    """Federated data taken apart: weights s_i in proportion to each row's share of the objective."""
    s = None
    plain = data.sample_weight is None and np.array_equal(data.weights, data.sizes / data.n_rows)
    if not plain:
        s = data.row_weights * float(data.totals.sum())
    clients = np.repeat(np.array(data.ids), data.sizes)
    return CheckedRows(
        data.X, data.y, clients, s, np.arange(data.n_rows), data.feature_names, data.has_missing
    )


def features(estimator: Any, X: Any) -> Any:
    """Rows to predict for, with the features of those that were fitted."""
    if isinstance(X, FederatedData):
        if X.n_features != estimator.n_features_in_:
            raise ValueError(
                f"X has {X.n_features} features, but {type(estimator).__name__} is expecting "
                f"{estimator.n_features_in_} features as input"
            )
        return X.X if X.is_sparse else X.X.reshape(X.n_rows, -1)
    finite = _finite(estimator)
    return validated(estimator, X, accept_sparse="csr", dtype=FLOATS, reset=False, ensure_all_finite=finite)


def validated(estimator: Any, X: Any, *y: Any, **rules: Any) -> Any:
    """``validate_data``, whose "could not convert string to float" becomes the columns that hold words."""
    try:
        return validate_data(estimator, X, *y, **rules)
    except ValueError as error:
        if "could not convert string to float" not in str(error):
            raise
        complaint = _words(X, *y)
        raise error if complaint is None else ValueError(complaint) from None


def _words(X: Any, y: Any = None) -> str | None:
    """Which columns of X hold words instead of numbers, with the first of each; else which target is one."""
    names = tuple(map(str, X.columns)) if hasattr(X, "columns") else None
    values = np.asarray(X, dtype=object)
    if values.ndim == 2:
        firsts = ((j, next(filter(_is_word, values[:, j]), None)) for j in range(values.shape[1]))
        held = [f"{column([j], names)} holds {word!r}" for j, word in firsts if word is not None]
        if held:
            more = f" (and {counted(len(held) - 5, 'more column')})" if len(held) > 5 else ""
            return f"X must be numeric, but {', '.join(held[:5])}{more}{ENCODE}"
    for i, value in enumerate(np.asarray(y, dtype=object).ravel()):
        if _is_word(value):
            return f"y must be numeric, but row {i} holds {value!r}: labels are for classifiers"
    return None


def _is_word(value: Any) -> bool:
    """Whether a value is text that is no number."""
    if not isinstance(value, str | bytes):
        return False
    try:
        float(value)
    except ValueError:
        return True
    return False
