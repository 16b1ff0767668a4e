"""Which exact solver for which problem."""

from __future__ import annotations

from typing import Any

from unpooled._validation import closest
from unpooled.exact.anderson import AndersonProxGradient
from unpooled.exact.base import ExactSolver
from unpooled.exact.fista import Fista
from unpooled.exact.prox_newton import ProxNewton
from unpooled.exact.sufficient_statistics import SufficientStatistics
from unpooled.problem import BoundProblem

SOLVERS: dict[str, type[ExactSolver]] = {
    "sufficient_statistics": SufficientStatistics,
    "prox_newton": ProxNewton,
    "anderson": AndersonProxGradient,
    "fista": Fista,
}
MOST_FEATURES = 5000  # whose Gram matrix (100 MB a client) is sent


def choose(
    problem: BoundProblem, solver: Any, min_rows: int, second_order: bool
) -> tuple[ExactSolver, list[str]]:
    """The solver, and a sentence that says why where it was chosen."""
    if solver == "auto":
        chosen, why = _automatic(problem, min_rows, second_order)
        return chosen, [f"{chosen.name} {chosen.was} chosen: {why}."]
    if isinstance(solver, str):
        if solver not in SOLVERS:
            known = ", ".join(repr(name) for name in ("auto", *SOLVERS))
            raise ValueError(f"there is no solver {solver!r}{closest(solver, SOLVERS)}; known: {known}")
        solver = SOLVERS[solver](min_rows=min_rows)
    if not isinstance(solver, ExactSolver):
        raise TypeError(f"solver must be a name or an exact solver such as ProxNewton(), got {solver!r}")
    lacks = solver.lacks(problem)
    if lacks:
        pair = f"{type(problem.problem.loss).__name__} with {type(problem.problem.penalty).__name__}"
        raise ValueError(
            f"{solver.name} cannot solve {pair}: it needs {lacks}; solver='auto' chooses another"
        )
    if solver.is_second_order and not second_order:
        raise ValueError(f"{solver.name} needs second-order statistics, but second_order=False")
    return solver, []


def _automatic(problem: BoundProblem, min_rows: int, second_order: bool) -> tuple[ExactSolver, str]:
    p = problem.layout.n_coefficients // problem.layout.n_outputs
    if not second_order:
        return AndersonProxGradient(min_rows), "second-order statistics are not to be shared"
    one_round, newton = SufficientStatistics(min_rows), ProxNewton(min_rows)
    if one_round.lacks(problem) is None and p <= MOST_FEATURES:
        return one_round, f"the loss is squared and a Gram matrix of {p} features is small enough"
    lacks = newton.lacks(problem)
    if lacks is None:
        return newton, "the loss has a second derivative and the penalty is one of blocks"
    return AndersonProxGradient(min_rows), f"prox-Newton would need {lacks}"
