"""The work of a turn, made once and handed to every contender: data, cohorts, minibatches, step weights.

Cohorts and minibatches are the project's own draws, so that all contenders see the same rows in the same
steps. The engine draws them itself while it is timed; the others find them ready.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

import unpooled as up
from benchmarks.shapes import Shape
from unpooled.kernels.arrays import Array
from unpooled.kernels.draws import cohort, minibatch
from unpooled.problem import BoundProblem

SEED = 0


@dataclass(frozen=True)
class Step:
    """The numbers of one local step: h += α(∇f − (μ/2)w), then w = prox of (A/c)·λR at −h/c."""

    alpha: float
    A: float
    c: float


@dataclass(frozen=True)
class Round:
    """Who works in a round, on which rows (S, E, b) of all clients' rows, with which weights (S,)."""

    cohort: NDArray[np.int64]
    rows: NDArray[np.int64]
    weights: NDArray[np.float64]
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Work:
    """A shape with its data in one precision; coefficients are matrices (p, C), C = 1 for regression."""

    shape: Shape
    data: up.FederatedData
    n_rounds: int

    def __post_init__(self) -> None:
        if self.data.sizes.min() < self.shape.batch_size:
            raise ValueError(f"a client of {self.shape.name} has fewer rows than a minibatch")

    @cached_property
    def problem(self) -> BoundProblem:
        """The problem laid out for these data."""
        return self.shape.problem.bind(self.data)

    @property
    def X(self) -> Array:
        """All rows (N, p); those that are matrices are flattened."""
        return np.asarray(self.data.X).reshape(self.data.n_rows, -1)

    @property
    def n_outputs(self) -> int:
        """C."""
        return self.problem.layout.n_outputs

    @property
    def is_softmax(self) -> bool:
        """Softmax, else least squares."""
        return isinstance(self.shape.problem.loss, up.Softmax)

    @property
    def matrix(self) -> tuple[int, int] | None:
        """The shape of the matrix under a nuclear norm; None under the ℓ1 norm."""
        return self.data.row_shape if isinstance(self.shape.problem.penalty, up.Nuclear) else None

    @property
    def lam(self) -> float:
        """λ."""
        return self.shape.problem.penalty.lam

    @property
    def mu(self) -> float:
        """μ."""
        return self.shape.algorithm.numbers.mu

    @property
    def flat_start(self) -> NDArray[np.float64]:
        """w_0 as algorithms take it."""
        return self.problem.layout.pack(self.shape.start(self.data))

    @property
    def dual_start(self) -> Array:
        """h = −γw_0 of shape (p, C), in the data's precision."""
        h = -self.shape.algorithm.numbers.gamma * self.coefficients(self.flat_start)
        return np.ascontiguousarray(h, dtype=self.data.dtype)

    @property
    def first(self) -> Step:
        """The prox before the first step: none, and the quadratic's first weight."""
        return Step(0.0, 0.0, float(self.shape.algorithm.numbers.gamma))

    @property
    def flops(self) -> float:
        """Floating-point operations of a round, zeros counted: two products of b × p × C a step."""
        shape = self.shape
        steps = shape.cohort * shape.algorithm.local_steps
        return 4.0 * shape.batch_size * self.data.n_features * self.n_outputs * steps

    def coefficients(self, flat: Array) -> NDArray[np.float64]:
        """A flat vector as a matrix (p, C)."""
        return self.problem.layout.unpack(flat)[0].reshape(self.data.n_features, self.n_outputs)

    @cached_property
    def rounds(self) -> tuple[Round, ...]:
        """All rounds' draws and weights."""
        return tuple(self._round(r) for r in range(self.n_rounds))

    def _round(self, r: int) -> Round:
        shape, data = self.shape, self.data
        chosen = cohort(SEED, r, data.n_clients, shape.cohort)
        steps = range(shape.algorithm.local_steps)
        rows = np.array(
            [
                [minibatch(SEED, r, k, j, data.sizes[k], shape.batch_size) + data.offsets[k] for j in steps]
                for k in chosen
            ]
        )
        pi = data.weights[chosen]
        plan = shape.algorithm.plan(self.problem, r)
        numbers = zip(plan.alpha.tolist(), plan.A.tolist(), plan.c.tolist(), strict=True)
        return Round(chosen, rows, pi / pi.sum(), tuple(Step(*step) for step in numbers))
