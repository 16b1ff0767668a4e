"""Data whose rows are elsewhere: what the server knows of them, and what it can ask their holders."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike

from unpooled import _validation as validation
from unpooled._validation import ClientId, Names
from unpooled.data.base import Posed
from unpooled.engines.remote.engine import Remote
from unpooled.engines.remote.failures import exchange_all
from unpooled.engines.remote.messages import Holder, Reply, Request, Transport
from unpooled.engines.remote.replies import Check, bound, checked, described, one_each
from unpooled.engines.remote.specs import encode
from unpooled.exact.expected import Rule
from unpooled.kernels.arrays import Array, Arrays, Float
from unpooled.kernels.linalg.lanczos import Operator
from unpooled.kernels.weighted_sum import add_rows
from unpooled.problem import BoundProblem

SAME = ("row_shape", "dtype", "is_sparse", "is_weighted", "feature_names")  # what all holders must agree in


@dataclass(frozen=True, eq=False, repr=False)
class RemoteData:
    """K clients at their holders, one or several at each. ``of`` asks the holders what they have.

    It stands in for a ``FederatedData`` in ``solve``, ``path``, ``cross_validate`` and ``simulate``, whose
    engine is then ``remote.Remote()``. ``holders`` has the positions of each holder's clients in ``ids``.
    Holders that do not answer are asked again, ``retries`` times. To ``trusted`` holders a user's own loss
    can cross, pickled.
    """

    transport: Transport
    holders: Mapping[Holder, Array]
    ids: tuple[ClientId, ...]
    sizes: Array
    totals: Float
    weights: Float
    row_shape: tuple[int, ...]
    dtype: np.dtype[Any]
    is_sparse: bool
    is_mapped: bool
    has_missing: bool
    feature_names: Names
    digest: str
    retries: int = 1
    trusted: bool = False
    is_weighted: bool = True

    @classmethod
    def of(
        cls, transport: Transport, *, weights: Any = "samples", retries: int = 1, trusted: bool = False
    ) -> RemoteData:
        """Ask everyone who is there now; ``weights`` as in ``FederatedData``."""
        holders = transport.holders()
        if not holders:
            raise ValueError("no holder of rows has joined")
        requests = {holder: Request("describe", {}, {}) for holder in holders}
        nobody = np.empty(0, np.int64)
        told = exchange_all(transport, requests, retries)
        told = checked(told, dict.fromkeys(holders, nobody), described)
        owner = _owners(told)
        ids = validation.sorted_ids(owner, "client")
        first = told[holders[0]].spec
        for holder in holders[1:]:
            for name in SAME:
                if told[holder].spec[name] != first[name]:
                    mine, other = first[name], told[holder].spec[name]
                    raise ValueError(
                        f"{holders[0]!r} and {holder!r} differ in {name}: {mine!r} there, {other!r} here"
                    )
        place = {name: k for k, name in enumerate(ids)}
        sizes, totals = np.empty(len(ids), np.int64), np.empty(len(ids))
        positions: dict[Holder, Array] = {}
        for holder, reply in told.items():
            own = np.array([place[name] for name in reply.spec["ids"]], dtype=np.int64)
            sizes[own], totals[own], positions[holder] = reply.arrays["sizes"], reply.arrays["totals"], own
        digests = repr([(holder, told[holder].spec["digest"]) for holder in holders]).encode()
        names = first["feature_names"]
        return cls(
            transport,
            positions,
            ids,
            sizes,
            totals,
            validation.client_weights(weights, totals, ids),
            tuple(first["row_shape"]),
            np.dtype(first["dtype"]),
            bool(first["is_sparse"]),
            any(told[holder].spec["is_mapped"] for holder in holders),
            any(told[holder].spec["has_missing"] for holder in holders),
            None if names is None else tuple(names),
            hashlib.blake2b(digests, digest_size=8).hexdigest(),
            retries,
            trusted,
            bool(first["is_weighted"]),
        )

    @property
    def n_clients(self) -> int:
        """K."""
        return len(self.ids)

    @property
    def n_rows(self) -> int:
        """N = Σ n_k."""
        return int(self.sizes.sum())

    @property
    def n_features(self) -> int:
        """p, or p1·p2."""
        return math.prod(self.row_shape)

    def __len__(self) -> int:
        return self.n_clients

    def __repr__(self) -> str:
        shape, n = "×".join(map(str, self.row_shape)), len(self.holders)
        return f"RemoteData({self.n_clients} clients at {n} holders, {self.n_rows} rows × {shape} features)"

    @property
    def engine(self) -> Remote:
        """Where the rows are."""
        return Remote()

    def fingerprint(self) -> str:
        """A digest of the holders' own, and of the weights: a resumed run must see the same one."""
        return hashlib.blake2b(self.digest.encode() + self.weights.tobytes(), digest_size=8).hexdigest()

    def astype(self, dtype: DTypeLike) -> Self:
        """The same rows in float32 or float64, at the holders."""
        return replace(self, dtype=validation.precision(dtype))

    def with_weights(self, weights: Any) -> Self:
        """The same rows with other π_k (see ``FederatedData``)."""
        return replace(self, weights=validation.client_weights(weights, self.totals, self.ids))

    def request(self, holder: Holder, kind: str, spec: Mapping[str, Any], arrays: Arrays) -> Request:
        """What one holder is asked: with it go the precision, and the positions of the holder's clients."""
        common = {"dtype": str(self.dtype), "n_clients": self.n_clients}
        return Request(kind, {**spec, **common}, {**arrays, "positions": self.holders[holder]})

    def ask_all(
        self, kind: str, spec: Mapping[str, Any], arrays: Arrays, check: Check
    ) -> dict[Holder, Reply]:
        """Every holder's reply; ``SiteLostError`` where one has none, or one that ``check`` complains of."""
        requests = {holder: self.request(holder, kind, spec, arrays) for holder in self.holders}
        return checked(exchange_all(self.transport, requests, self.retries), self.holders, check)

    def ask_about(
        self, kind: str, problem: Posed, check: Check, arrays: Arrays | None = None
    ) -> dict[Holder, Reply]:
        """Every holder's reply to a question about a problem."""
        spec, own = encode(problem, self.trusted, "problem")
        return self.ask_all(kind, {"problem": spec}, own | (arrays or {}), check)

    def by_client(self, replies: Mapping[Holder, Reply], name: str) -> Array:
        """One row for each client from arrays that have one for each of the holder's."""
        parts = np.concatenate([replies[holder].arrays[name] for holder in self.holders])
        out = np.empty_like(parts)
        out[np.concatenate([*self.holders.values()])] = parts
        return out

    def bind(self, problem: Posed) -> BoundProblem:
        """The problem laid out for these data; the holders check that their targets fit the loss."""
        if self.has_missing:
            raise ValueError("the data has missing values: preprocessing.prepare(data, missing='mean') first")
        replies = self.ask_about("bind", problem, bound)
        complaints = [c for reply in replies.values() for c in reply.spec["complaints"]]
        if complaints:
            raise ValueError("; ".join(complaints))
        outputs = [reply.spec["outputs"] for reply in replies.values()]
        laid_out: BoundProblem = problem.laid_out(self.row_shape, None if None in outputs else max(outputs))
        return laid_out

    def smooth(self, problem: Posed, w: Array, intercept: Any) -> float:
        """Σ_k π_k L_k(w), every client's L_k asked of its holder."""
        arrays = {"w": np.asarray(w)}
        if intercept is not None:
            arrays["intercept"] = np.asarray(intercept, dtype=np.float64)
        check = one_each({"value": Rule((), most=math.inf)})
        values = self.by_client(self.ask_about("value", problem, check, arrays), "value")
        return float(np.dot(self.weights, values))

    def spectra(self, problem: Posed) -> tuple[Float, Float]:
        """Each client's largest curvature and longest row (see ``curvature``)."""
        check = one_each({"top": Rule((), 0.0), "longest": Rule((), 0.0)})
        replies = self.ask_about("spectra", problem, check)
        return self.by_client(replies, "top"), self.by_client(replies, "longest")

    def curve(self, problem: Posed) -> Operator:
        """u ↦ Σ_k π_k times the curvature of client k, times u; client after client, as with rows at hand."""

        def product(u: Float) -> Float:
            check = one_each({"product": Rule(u.shape)})
            products = self.by_client(self.ask_about("curve", problem, check, {"u": u}), "product")
            total = np.zeros(u.size)
            add_rows(total, self.weights, products)
            return total

        return product


def _owners(told: Mapping[Holder, Reply]) -> dict[ClientId, Holder]:
    """Who holds which client; two who hold the same one are named."""
    owner: dict[ClientId, Holder] = {}
    for holder, reply in sorted(told.items()):
        for name in reply.spec["ids"]:
            if name in owner:
                raise ValueError(f"client id {name!r} is held by both {owner[name]!r} and {holder!r}")
            owner[name] = holder
    return owner
