"""What is measured of an estimate: each function here makes a ``metric(w, intercept=None) -> float``.

    >>> support_f1(truth=[1, 1, 0, 0])([0.9, 0, 0, 0.3])
    0.5

The metrics of data weigh row i of client k by π_k s_i / n_k, as the objective does; with the default
weights and no sample weights that is the plain mean over the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from unpooled.data.federated import FederatedData


class Metric(Protocol):
    """A number for an estimate; ``__name__`` heads its column in tables and plots."""

    __name__: str

    def __call__(self, w: Any, intercept: Any = None) -> float: ...  # noqa: D102


class Smooth(Protocol):
    """What `loss` needs of a problem."""

    def smooth(self, w: Any, data: FederatedData, intercept: Any) -> float:
        """Σ_k π_k L_k(w)."""
        ...


def higher_is_better(name: str) -> bool:
    """Whether a metric of this name is the better the higher it is; errors and losses are not."""
    return any(word in name.lower() for word in ("f1", "accuracy", "auc", "r2"))


def l2_error(truth: ArrayLike) -> Metric:
    """‖w − w*‖₂ (the Frobenius norm for matrices)."""
    truth = np.asarray(truth)

    def l2_error(w: Any, intercept: Any = None) -> float:
        return float(np.linalg.norm((_like(w, truth) - truth).ravel()))

    return l2_error


def frobenius_error(truth: ArrayLike) -> Metric:
    """‖W − W*‖_F."""
    metric = l2_error(truth)
    metric.__name__ = "frobenius_error"
    return metric


def l1_error(truth: ArrayLike) -> Metric:
    """‖w − w*‖₁, over all entries."""
    truth = np.asarray(truth)

    def l1_error(w: Any, intercept: Any = None) -> float:
        return float(np.abs(_like(w, truth) - truth).sum())

    return l1_error


def operator_error(truth: ArrayLike) -> Metric:
    """‖W − W*‖_op, the largest singular value of the difference."""
    truth = np.asarray(truth)
    if truth.ndim != 2:
        raise ValueError(f"operator_error needs a matrix, got a truth of shape {truth.shape}")

    def operator_error(w: Any, intercept: Any = None) -> float:
        return float(np.linalg.norm(_like(w, truth) - truth, 2))

    return operator_error


def support_f1(truth: ArrayLike, threshold: float = 0.01) -> Metric:
    """2TP / (2TP + FP + FN) of the support {|w_j| > threshold} against {w*_j ≠ 0}; 1 if both are empty."""
    truth = np.asarray(truth)
    if not threshold >= 0:
        raise ValueError(f"threshold must not be negative, got {threshold}")
    support = truth != 0

    def support_f1(w: Any, intercept: Any = None) -> float:
        found = np.abs(_like(w, truth)) > threshold
        both = int(found.sum()) + int(support.sum())
        return 2 * int((found & support).sum()) / both if both else 1.0

    return support_f1


def nonzeros() -> Metric:
    """The number of entries that are not exactly zero."""

    def nonzeros(w: Any, intercept: Any = None) -> float:
        return float(np.count_nonzero(w))

    return nonzeros


def rank(tolerance: float = 1e-6, threshold: float | None = None) -> Metric:
    """The number of singular values above ``tolerance`` times the largest, or above ``threshold`` if given.

    A singular value that was thresholded to zero comes back from the next decomposition as rounding, about
    1e-16 of the largest (1e-7 in float32). One that a method has only made small is larger: FedMiD leaves
    1e-5 to 1e-2 in the paper's low-rank problem. The tolerance is at least max(p1, p2) machine epsilons.
    """

    def rank(w: Any, intercept: Any = None) -> float:
        w = np.asarray(w)
        if w.ndim != 2:
            raise ValueError(f"rank needs a matrix, got shape {w.shape}")
        values = np.linalg.svd(w, compute_uv=False)
        floor = max(tolerance, max(w.shape) * float(np.finfo(values.dtype).eps))
        return float(np.count_nonzero(values > (floor * values[0] if threshold is None else threshold)))

    return rank


def mse(data: FederatedData) -> Metric:
    """The mean of (⟨x_i, w⟩ + b − y_i)²."""
    row_weights = data.row_weights

    def mse(w: Any, intercept: Any = None) -> float:
        w = np.asarray(w)
        if w.shape != data.row_shape:
            raise ValueError(f"mse: w has shape {w.shape}, but a row of the data has {data.row_shape}")
        return float(row_weights @ (_margins(data, w, intercept) - data.y) ** 2)

    return mse


def accuracy(data: FederatedData) -> Metric:
    """The share of rows whose class is predicted.

    w (p,): classes {0, 1} or {−1, 1}, the second predicted where ⟨x, w⟩ + b > 0. w (p, C): classes
    0 … C−1, the largest of xᵀw + b predicted.
    """
    row_weights, classes = data.row_weights, np.unique(data.y)

    def accuracy(w: Any, intercept: Any = None) -> float:
        w = np.asarray(w)
        if w.shape == data.row_shape:
            if not (set(classes) <= {0, 1} or set(classes) <= {-1, 1}):
                raise ValueError(
                    f"accuracy: w of shape {w.shape} needs y in {{0, 1}} or {{-1, 1}}, got {classes[:5]}"
                )
            return float(row_weights @ ((_margins(data, w, intercept) > 0) == (data.y > 0)))
        if w.shape[:-1] != data.row_shape or w.shape[-1] < 2:
            raise ValueError(f"accuracy: w has shape {w.shape}, but a row of the data has {data.row_shape}")
        if not (np.isin(classes, np.arange(w.shape[-1])).all()):
            raise ValueError(
                f"accuracy: w of shape {w.shape} needs y in 0 … {w.shape[-1] - 1}, got {classes[:5]}"
            )
        return float(row_weights @ (np.argmax(_margins(data, w, intercept), axis=1) == data.y))

    return accuracy


def loss(data: FederatedData, problem: Smooth) -> Metric:
    """The smooth part of the objective, Σ_k π_k L_k(w)."""

    def loss(w: Any, intercept: Any = None) -> float:
        return float(problem.smooth(w, data, intercept))

    return loss


def _like(w: Any, truth: NDArray[Any]) -> NDArray[Any]:
    estimate: NDArray[Any] = np.asarray(w)
    if estimate.shape != truth.shape:
        raise ValueError(f"w has shape {estimate.shape}, but the truth has {truth.shape}")
    return estimate


def _margins(data: FederatedData, w: NDArray[Any], intercept: Any) -> NDArray[Any]:
    """⟨x_i, w⟩ + b for every row, (N,) or (N, C); in the dtype of X, so that X is not copied."""
    X = data.X if data.is_sparse else data.X.reshape(data.n_rows, -1)
    margins = X @ w.reshape(data.n_features, *w.shape[len(data.row_shape) :]).astype(data.dtype, copy=False)
    return np.asarray(margins if intercept is None else margins + np.asarray(intercept, dtype=data.dtype))
