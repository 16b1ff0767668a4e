"""Check the arguments of ``fit`` and ``predict`` by scikit-learn's rules and convert them."""

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
    """Checked rows in the caller's order, without those of weight zero; ``number`` is their position."""

    X: Any
    y: Any
    clients: Any
    sample_weight: Float | None
    number: Array
    names: tuple[str, ...] | None = None
    allow_missing: bool = False

    def federated(self) -> tuple[FederatedData, Array]:
        """The rows sorted by client, and the original position of each."""
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
        """Σ s_i, or the number of rows if they have no weights."""
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
    """Check X with one target, one client id and optionally one weight per row."""
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
    """Attach client ids and weights to checked X and y, and drop rows of weight zero."""
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
    """The value of scikit-learn's ``ensure_all_finite`` for X."""
    return "allow-nan" if estimator.__sklearn_tags__().input_tags.allow_nan else True


def from_federated(
    estimator: Any, data: FederatedData, y: Any, clients: Any, sample_weight: Any
) -> FederatedData:
    """Check a FederatedData, which includes targets, clients and weights."""
    for name, given in (("y", y), ("clients", clients), ("sample_weight", sample_weight)):
        if given is not None:
            raise ValueError(f"X is a FederatedData, which includes {name}: do not pass {name}")
    for name in ("feature_names_in_", "n_features_in_"):
        if hasattr(estimator, name):
            delattr(estimator, name)
    estimator.n_features_in_ = data.n_features
    if data.feature_names is not None:
        estimator.feature_names_in_ = np.array(data.feature_names, dtype=object)
    return data


def rows_of(data: FederatedData) -> CheckedRows:
    """The rows of federated data, with weights s_i in proportion to each row's share of the objective."""
    s = None
    plain = data.sample_weight is None and np.array_equal(data.weights, data.sizes / data.n_rows)
    if not plain:
        s = data.row_weights * float(data.totals.sum())
    clients = np.repeat(np.array(data.ids), data.sizes)
    return CheckedRows(
        data.X, data.y, clients, s, np.arange(data.n_rows), data.feature_names, data.has_missing
    )


def features(estimator: Any, X: Any) -> Any:
    """Check rows for prediction against the features seen in ``fit``."""
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
    """``validate_data``, with an error that names the columns that hold text."""
    try:
        return validate_data(estimator, X, *y, **rules)
    except ValueError as error:
        if "could not convert string to float" not in str(error):
            raise
        complaint = _words(X, *y)
        raise error if complaint is None else ValueError(complaint) from None


def _words(X: Any, y: Any = None) -> str | None:
    """An error message that names the columns of X, or else the target, that hold text."""
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
    """Whether a value is text that is not a number."""
    if not isinstance(value, str | bytes):
        return False
    try:
        float(value)
    except ValueError:
        return True
    return False
