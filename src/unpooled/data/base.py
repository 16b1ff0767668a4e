"""The protocol of federated data, whether the rows are in this process or at remote sites."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import DTypeLike, NDArray

from unpooled._validation import ClientId, Names
from unpooled.kernels.arrays import Array, Float
from unpooled.kernels.linalg.lanczos import Operator

if TYPE_CHECKING:
    from unpooled.data.federated import FederatedData


class Posed(Protocol):
    """What data need of a problem: ``Problem`` is one."""

    @property
    def loss(self) -> Any:
        """The loss."""

    @property
    def intercept(self) -> bool | str:
        """Whether there is an intercept, or "sites"."""

    def bind_rows(self, data: FederatedData) -> Any:
        """The problem laid out for rows that are here."""

    def laid_out(self, row_shape: tuple[int, ...], n_outputs: int | None) -> Any:
        """The problem laid out for rows of a shape, and so many outputs."""

    def smooth_of_rows(self, w: Array, data: FederatedData, intercept: Any) -> float:
        """Σ_k π_k L_k(w) of rows that are here."""


@runtime_checkable
class Data(Protocol):
    """K clients and their rows: ``FederatedData`` in this process, ``RemoteData`` at sites.

    ``engine`` is the engine that the clients need; None where the rows are in this process.
    """

    @property
    def ids(self) -> tuple[ClientId, ...]:
        """The clients' names, sorted."""

    @property
    def sizes(self) -> Array:
        """n_k, the rows of each client."""

    @property
    def weights(self) -> NDArray[np.float64]:
        """π_k."""

    @property
    def totals(self) -> NDArray[np.float64]:
        """The sums of the clients' sample weights."""

    @property
    def row_shape(self) -> tuple[int, ...]:
        """(p,) or (p1, p2)."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision of the rows."""

    @property
    def is_sparse(self) -> bool:
        """Whether rows are kept as their non-zeros."""

    @property
    def has_missing(self) -> bool:
        """Whether a value is missing."""

    @property
    def feature_names(self) -> Names:
        """The columns' names, None where they have none."""

    @property
    def n_clients(self) -> int:
        """K."""

    @property
    def n_rows(self) -> int:
        """N = Σ n_k."""

    @property
    def n_features(self) -> int:
        """p, or p1·p2."""

    @property
    def engine(self) -> Any:
        """The engine that the clients need; None where the rows are in this process."""

    def fingerprint(self) -> str:
        """A digest: a resumed run must see the same one."""

    def astype(self, dtype: DTypeLike) -> Self:
        """The same rows in another precision."""

    def with_weights(self, weights: Any) -> Self:
        """The same rows with other π_k."""

    def bind(self, problem: Posed) -> Any:
        """The problem laid out for these rows; raises where the targets do not fit the loss."""

    def smooth(self, problem: Posed, w: Array, intercept: Any) -> float:
        """Σ_k π_k L_k(w)."""

    def spectra(self, problem: Posed) -> tuple[Float, Float]:
        """Each client's largest curvature and longest row."""

    def curve(self, problem: Posed) -> Operator:
        """u ↦ Σ_k π_k times the curvature of client k, times u; in the order of ids."""


def check_data(data: object) -> None:
    """Raise TypeError unless ``data`` implements the protocol."""
    if not isinstance(data, Data):
        raise TypeError(f"data must be a FederatedData (see its from_ functions), got {type(data).__name__}")
