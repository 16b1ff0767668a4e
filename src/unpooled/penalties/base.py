"""What a penalty is, and how to add one.

A penalty is h(w) = λR(w). It is a frozen dataclass whose field ``lam`` is λ, and it has two faces.

*In Python* it answers for arrays of the shape of the coefficients: ``norm`` is R, ``value`` is λR, ``prox``
and ``constrained_prox`` are the two minimisations below. A penalty of your own needs only these two::

    @dataclass(frozen=True)
    class NonNegative(Penalty):
        lam: float = 1.0

        def norm(self, w):
            return 0.0 if (w >= 0).all() else math.inf

        def prox(self, v, step):
            return np.maximum(v, 0.0)

*In compiled loops* it is the record that ``record(shape)`` returns: a NamedTuple of numbers and arrays whose
methods are kernels working on flat float64 vectors,

    prox(self, v, step, out)                                   v is scratch: it may be overwritten
    constrained_prox(self, v, step, center, radius, ball, out)
    subgradient(self, w, out)                                  an element of ∂h(w), the smallest

which write ``out`` (float32 or float64, never the memory of ``v``) and return nothing. They do not raise:
where a value is not finite, or where no point satisfies the constraints, they fill ``out`` with NaN. With a
record, the methods of the Python face by these names come for free and cannot disagree with it.

A penalty that treats every coordinate alike and apart may have a kernel ``entry(self, v, step)``, the prox of
one number, which leaves 0 at 0: dual averaging then takes its step in one pass over memory, and on sparse
rows a client works on the features that it meets. Where coordinates differ, ``entry_at(self, j, v, step)``
serves dense rows in the same way.

**What more it can do.** Nothing in the library asks which penalty it has; it asks what the penalty can do:

    dual_norm(u)         max ⟨u, w⟩ over R(w) ≤ 1: a duality gap instead of a KKT residual, and the λ at
                         which a path begins. It states that R is convex with its minimum at zero.
    blocks(shape, order) h as groups of coordinates with weights and ridges (``blocks.Blocks``), where it is
                         such a sum: prox-Newton, working sets, steps in each column's own unit
    unpenalised(shape)   which coefficients carry no penalty: they are fitted before a path begins
    leaving_free(…)      the penalty with some columns unpenalised
    counts_nonzeros      whether the non-zero coefficients are the degrees of freedom: AIC, BIC and EBIC

When R splits into blocks, ``constrained_prox`` comes for free as well: write the kernel ``at_multiplier``
and hand the record to ``multipliers.solve``; ``l1.py`` shows all of it in one page.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel, method
from unpooled.penalties.blocks import Blocks
from unpooled.penalties.inputs import finite_array, finite_number, flat, number, positive_number

Order = Literal["C", "F"]

prox = method("prox")
entry = method("entry")


@kernel
def same_entry(record: Any, j: int, v: float, step: float) -> Any:
    """The prox of coordinate j where all coordinates are alike."""
    return entry(record, v, step)


entry_at = method("entry_at", default=same_entry)
constrained_prox = method("constrained_prox")
subgradient = method("subgradient")


class Penalty(ABC):
    """h(w) = λR(w), with λ = ``lam`` ≥ 0."""

    lam: float

    counts_nonzeros: ClassVar[bool] = True
    """Whether the non-zero coefficients are the degrees of freedom of a fit."""

    @abstractmethod
    def norm(self, w: ArrayLike) -> float:
        """R(w), without λ."""

    def value(self, w: ArrayLike) -> float:
        """h(w) = λR(w)."""
        return self.lam * self.norm(w)

    def record(self, shape: tuple[int, ...], order: Order = "C") -> Any:
        """This penalty for compiled code, on coefficients of ``shape`` flattened in ``order``."""
        raise NotImplementedError(f"{type(self).__name__} has no record: it runs in Python only")

    @property
    def is_compiled(self) -> bool:
        """Whether this penalty has a record, and so a compiled side."""
        return type(self).record is not Penalty.record

    def prox(self, v: ArrayLike, step: float) -> Array:
        """argmin_w ½‖w − v‖² + step·λR(w)."""
        v = finite_array("v", v)
        step = finite_number("step", step, 0.0)
        out = np.empty(v.size, dtype=v.dtype)
        self.record(v.shape).prox(flat(v), step, out)
        return out.reshape(v.shape)

    def constrained_prox(
        self, v: ArrayLike, step: float, center: ArrayLike, radius: float, ball: float = math.inf
    ) -> Array:
        """argmin_w ½‖w − v‖² + step·λR(w)  subject to  R(w − center) ≤ radius and ‖w‖₂ ≤ ball.

        A ``ValueError`` says when no point satisfies both constraints.
        """
        v = finite_array("v", v)
        center = finite_array("center", center, v.shape)
        step = finite_number("step", step, 0.0)
        radius, ball = number("radius", radius, 0.0), positive_number("ball", ball)
        out = np.empty(v.size, dtype=v.dtype)
        self.record(v.shape).constrained_prox(flat(v), step, flat(center), radius, ball, out)
        if np.isnan(out).any():
            raise ValueError(
                f"the feasible set is empty: no w with R(w − center) ≤ radius={radius:g} has ‖w‖₂ ≤ "
                f"ball={ball:g} (the center has norm {np.linalg.norm(center):g})"
            )
        return out.reshape(v.shape)

    def subgradient(self, w: ArrayLike) -> Array:
        """The element of ∂h(w) of least norm."""
        w = finite_array("w", w)
        out = np.empty(w.size, dtype=w.dtype)
        self.record(w.shape).subgradient(flat(w), out)
        return out.reshape(w.shape)

    def dual_norm(self, u: ArrayLike) -> float:
        """max ⟨u, w⟩ over R(w) ≤ 1."""
        raise NotImplementedError(f"{type(self).__name__} does not define its dual norm")

    @property
    def has_dual_norm(self) -> bool:
        """Whether ``dual_norm`` is defined."""
        return type(self).dual_norm is not Penalty.dual_norm

    def blocks(self, shape: tuple[int, ...], order: Order) -> Blocks | None:
        """h as blocks of the flat coefficients; None where it is no such sum."""
        return None

    def unpenalised(self, shape: tuple[int, ...]) -> Array:
        """Which coefficients carry no penalty: a mask of their shape."""
        return np.zeros(shape, dtype=bool)

    def leaving_free(self, columns: Sequence[int], row_shape: tuple[int, ...]) -> Penalty:
        """The same penalty with these features unpenalised."""
        raise TypeError(f"only L1 and ElasticNet leave columns unpenalised, not {self!r}")

    def lambda_max(self, gradient_at_zero: ArrayLike) -> float:
        """The smallest λ for which w = 0 minimises L(w) + λR(w): the dual norm of ∇L(0)."""
        return self.dual_norm(gradient_at_zero)

    def with_lam(self, lam: float) -> Self:
        """The same penalty with another λ."""
        return dataclasses.replace(self, lam=lam)  # type: ignore[type-var]  # every penalty is a dataclass
