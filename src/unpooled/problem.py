"""The problem: minimise over w   Σ_k π_k L_k(w) + h(w),   L_k smooth, h = λR."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from unpooled._validation import is_number
from unpooled.data.base import Data
from unpooled.data.federated import FederatedData
from unpooled.kernels.arrays import Array, Float
from unpooled.kernels.compile import Kernel
from unpooled.kernels.layout import Layout
from unpooled.losses.base import LinearLoss
from unpooled.losses.plain import PlainLoss
from unpooled.penalties.base import Penalty
from unpooled.penalties.plain import PlainRegulariser
from unpooled.penalties.regulariser import Constrained, Entrywise, Free, Regulariser


@dataclass(frozen=True)
class Problem:
    """minimise  Σ_k π_k L_k(w) + h(w)  over ‖w‖₂ ≤ ball.

    ``loss`` and ``penalty`` are the library's or a user's own. ``intercept=True`` adds an unpenalised
    intercept (one a class for Softmax); ``intercept="sites"`` one for every client, which stays there
    (exact solvers only). Data come with the calls, so that one problem serves many.
    """

    loss: Any
    penalty: Any
    intercept: bool | str = False
    ball: float = math.inf

    def __post_init__(self) -> None:
        _must_have("loss", self.loss, ("value", "gradient"))
        _must_have("penalty", self.penalty, ("value", "prox"))
        if isinstance(self.intercept, str):
            if self.intercept != "sites":
                raise ValueError(f"intercept must be True, False or 'sites', got {self.intercept!r}")
            if self.linear is None:
                raise TypeError(f"an intercept for every site needs a LinearLoss, got {self.loss!r}")
        if not is_number(self.ball) or not self.ball > 0:
            raise ValueError(f"ball must be positive (inf for none), got {self.ball!r}")

    @property
    def linear(self) -> LinearLoss | None:
        """The loss, where it is one of linear margins."""
        return self.loss if isinstance(self.loss, LinearLoss) else None

    @property
    def has_site_intercepts(self) -> bool:
        """Whether every client has an intercept of its own."""
        return isinstance(self.intercept, str)

    def layout(self, data: FederatedData) -> Layout:
        """How this problem's parameters lie in a flat vector, given the shape of the data."""
        n_outputs = None if self.linear is None else self.linear.outputs(data.y)
        return self.laid_out(data.row_shape, n_outputs).layout

    def laid_out(self, row_shape: tuple[int, ...], n_outputs: int | None) -> BoundProblem:
        """This problem for rows of a shape, and so many outputs (None: w is a vector or one matrix)."""
        shared = 0 if self.has_site_intercepts else int(self.intercept)
        if n_outputs is None:
            return BoundProblem(self, Layout(row_shape, "C", shared))
        return BoundProblem(self, Layout((math.prod(row_shape), n_outputs), "F", n_outputs * shared))

    def smooth(self, w: Array, data: Data, intercept: Any = None) -> float:
        """The smooth part Σ_k π_k L_k(w); with site intercepts, ``intercept`` holds one a client."""
        return data.smooth(self, w, intercept)

    def smooth_of_rows(self, w: Array, data: FederatedData, intercept: Any = None) -> float:
        """The same, of rows that are here."""
        if self.linear is not None:
            return self.linear.value(w, data.X, data.y, data.row_weights, self._of_rows(intercept, data))
        values = [PlainLoss(self.loss).value(*client.rows, w, intercept) for client in data]
        return float(np.dot(data.weights, values))

    def objective(self, w: Array, data: Data, intercept: Any = None) -> float:
        """φ(w) = Σ_k π_k L_k(w) + h(w)."""
        return self.smooth(w, data, intercept) + float(self.penalty.value(w))

    def gradient(self, w: Array, data: FederatedData, intercept: Any = None) -> Any:
        """The gradient of the smooth part; with an intercept the pair (in w, in the intercept)."""
        if self.linear is not None:
            if self.has_site_intercepts:
                shifts = self._of_rows(intercept, data)
                own = self.loss.gradient(w, data.X, data.y, data.row_weights, shifts)
                return own if intercept is None else own[0]
            return self.loss.gradient(w, data.X, data.y, data.row_weights, intercept)
        parts = [PlainLoss(self.loss).extended_gradient(*client.rows, w, intercept) for client in data]
        total = np.tensordot(data.weights, np.array(parts), axes=1)
        return total if intercept is None else (total[:-1], float(total[-1]))

    def _of_rows(self, intercept: Any, data: FederatedData) -> Any:
        """The intercepts as margins add them: (C,), or (N, C) where every client has its own."""
        if intercept is None or not self.has_site_intercepts:
            return intercept
        intercepts = np.asarray(intercept, dtype=np.float64).reshape(data.n_clients, -1)
        return np.repeat(intercepts, data.sizes, axis=0)

    def with_lam(self, lam: float) -> Problem:
        """The same problem with another λ."""
        return Problem(self.loss, self.penalty.with_lam(lam), self.intercept, self.ball)

    def bind(self, data: Data) -> BoundProblem:
        """This problem laid out for data of this shape; checks that the targets fit the loss."""
        bound: BoundProblem = data.bind(self)
        return bound

    def bind_rows(self, data: FederatedData) -> BoundProblem:
        """The same, for rows that are here."""
        if data.has_missing:
            raise ValueError("the data has missing values: preprocessing.prepare(data, missing='mean') first")
        for complaint in self.complaints(data):
            raise ValueError(complaint)
        return BoundProblem(self, self.layout(data))

    def complaints(self, data: FederatedData) -> Iterator[str]:
        """Which clients' targets do not fit the loss, and why."""
        if self.linear is not None:
            for name, first, last in zip(data.ids, data.offsets[:-1], data.offsets[1:], strict=True):
                complaint = self.loss.check_targets(data.y[first:last])
                if complaint:
                    yield f"client {name!r}: {complaint}"


@dataclass(frozen=True)
class BoundProblem:
    """A problem whose flat layout is known: what algorithms and engines work with."""

    problem: Problem
    layout: Layout
    constrained: bool = False

    @cached_property
    def linear(self) -> LinearLoss | None:
        """The loss, where it is one of linear margins: it can be asked what it ``offers``."""
        return self.problem.linear

    @cached_property
    def loss(self) -> Any:
        """The loss's record."""
        return PlainLoss(self.problem.loss) if self.linear is None else self.linear.record()

    @cached_property
    def regulariser(self) -> Any:
        """The penalty's record with the unpenalised intercepts and the ball around it."""
        penalty, layout = self.problem.penalty, self.layout
        if isinstance(penalty, Penalty) and penalty.is_compiled:
            record = penalty.record(layout.shape, order=layout.order)
            n, ball = layout.n_coefficients, float(self.problem.ball)
            if not math.isinf(ball) or self.constrained:
                return Regulariser(record, Constrained(n, ball))
            entrywise = hasattr(record, "entry") or hasattr(record, "entry_at")
            return Regulariser(record, Entrywise(n) if entrywise else Free(n))
        return PlainRegulariser(penalty, layout, float(self.problem.ball))

    @cached_property
    def is_compiled(self) -> bool:
        """Whether both loss and penalty are compiled, and so every local loop."""
        return not isinstance(self.loss, PlainLoss) and not isinstance(self.regulariser, PlainRegulariser)

    def prox(self, v: Array, step: float, center: Array | None = None, radius: float = math.inf) -> Float:
        """argmin ½‖w − v‖² + step·h(w) over R(w − center) ≤ radius and the ball, for flat vectors.

        v may be overwritten.
        """
        v = np.asarray(v, dtype=np.float64)
        center = self._origin if center is None else np.asarray(center, dtype=np.float64)
        out = np.empty_like(v)
        self._prox(self.regulariser, v, float(step), center, float(radius), out)
        return out

    @cached_property
    def _prox(self) -> Any:
        """The regulariser's prox, compiled where it can be."""
        prox = type(self.regulariser).prox
        return prox.dispatcher(self.regulariser) if isinstance(prox, Kernel) else prox

    @cached_property
    def _origin(self) -> Float:
        """The center where there is none."""
        return np.zeros(self.layout.size)

    def with_lam(self, lam: float) -> BoundProblem:
        """The same with another λ."""
        return self._once(("lam", lam), lambda: BoundProblem(self.problem.with_lam(lam), self.layout))

    def with_constraint(self) -> BoundProblem:
        """The same for an algorithm whose prox has a finite radius."""
        return self._once("constraint", lambda: BoundProblem(self.problem, self.layout, True))

    @cached_property
    def _variants(self) -> dict[Any, BoundProblem]:
        return {}

    def _once(self, key: Any, make: Callable[[], BoundProblem]) -> BoundProblem:
        """Variants are asked for every round, and made once."""
        if key not in self._variants:
            self._variants[key] = make()
        return self._variants[key]


def _must_have(what: str, given: Any, methods: tuple[str, ...]) -> None:
    missing = [name for name in methods if not callable(getattr(given, name, None))]
    if missing or isinstance(given, type):
        hint = f"; did you mean {given.__name__}(…)?" if isinstance(given, type) else ""
        lacks = f" without {' and '.join(missing)}" if missing else ""
        raise TypeError(f"{what} must be an object with {' and '.join(methods)}, got {given!r}{lacks}{hint}")
