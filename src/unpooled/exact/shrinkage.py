"""The penalty of a problem on its flat vectors: blocks, or whole."""

from __future__ import annotations

from dataclasses import dataclass, replace

from unpooled.kernels.arrays import Float
from unpooled.penalties.blocks import Blocks, Shrinkage
from unpooled.problem import BoundProblem

__all__ = ["Blocks", "Shrinkage", "Whole", "shrinkage"]


@dataclass(frozen=True, eq=False)
class Whole(Shrinkage):
    """A penalty that is no sum of blocks, by its own value and prox; by its dual norm where it has one.

    The dual norm is the gauge of ∂R(0), so h*(u) = 0 where it is at most λ: that makes a bound for every
    convex R with its minimum at zero.
    """

    problem: BoundProblem

    @property
    def has_dual(self) -> bool:
        """Whether the penalty has a dual norm."""
        return getattr(self.problem.problem.penalty, "has_dual_norm", False)

    def value(self, w: Float) -> float:
        """h(w)."""
        return float(self.problem.problem.penalty.value(self.problem.layout.unpack(w)[0]))

    def prox(self, v: Float, step: float) -> Float:
        """Its prox."""
        return self.problem.prox(v.copy(), step)

    def limit(self, u: Float) -> float:
        """λ over the dual norm."""
        penalty = self.problem.problem.penalty
        size = float(penalty.dual_norm(self.problem.layout.unpack(u)[0]))
        return min(1.0, penalty.lam / size) if size > 0.0 else 1.0

    def of_coefficients(self) -> Whole:
        """The same on the coefficients alone, for a server that has taken the intercepts out."""
        layout = replace(self.problem.layout, n_intercepts=0)
        return Whole(BoundProblem(replace(self.problem.problem, intercept=False), layout))


def shrinkage(problem: BoundProblem) -> Shrinkage:
    """The problem's penalty on flat vectors."""
    layout, blocks = problem.layout, getattr(problem.problem.penalty, "blocks", None)
    found: Blocks | None = None if blocks is None else blocks(layout.shape, layout.order)
    return Whole(problem) if found is None else found.with_intercepts(layout.n_intercepts)
