"""A whole path of λ, each solution the start of the next, and the λ at which it begins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from unpooled._ledger import Ledger
from unpooled.data.base import Data
from unpooled.exact.base import opening, refused
from unpooled.exact.certificate import Certificate
from unpooled.exact.choose import choose
from unpooled.exact.clients import Question, QuestionEngine, open_clients
from unpooled.exact.null_model import has_null_model, null_model
from unpooled.exact.oracle import NONE
from unpooled.exact.prox_newton import is_quadratic
from unpooled.exact.refusals import Asked, why
from unpooled.exact.rounds import Server, Solve
from unpooled.exact.site_intercept import absorbed
from unpooled.exact.solve import (
    asked,
    bind,
    check_numbers,
    fallback,
    gradients_only,
    kept_back,
    not_converged,
    refusal,
)
from unpooled.exact.sufficient_statistics import SufficientStatistics
from unpooled.kernels.arrays import Array, Arrays, Float
from unpooled.problem import BoundProblem, Problem

AT_ONCE = 10  # λ that are solved in the same rounds
MIN_ROWS = 10  # as in solve
HUGE = 1e6  # times the gradient at zero: a λ at which only the intercept moves


@dataclass(eq=False, repr=False)
class Path:
    """Models at ``lambdas``, from the largest down: ``coefs`` (n, …), ``intercepts`` (n, …) or None.

    ``losses`` are the smooth parts of the objectives; ``n_rows`` is what information criteria need.
    ``certificates`` prove how far each model is from its optimum; ``converged`` says which reach ``tol``.
    """

    problem: Problem
    lambdas: Float
    coefs: Float
    intercepts: Float | None
    losses: Float
    certificates: list[Certificate]
    ledger: Ledger
    solver: str
    notes: list[str]
    n_rows: int
    tol: float

    @property
    def converged(self) -> Array:
        """Which of the models are certified as asked."""
        return np.array([certificate.relative <= self.tol for certificate in self.certificates])

    @property
    def rounds(self) -> int:
        """Rounds of communication, all of them."""
        return self.ledger.rounds

    @property
    def n_nonzero(self) -> Any:
        """How many coefficients are not zero, for each λ."""
        return np.array([np.count_nonzero(w) for w in self.coefs])

    def model(self, i: int) -> tuple[Float, Any]:
        """(w, intercept) at ``lambdas[i]``."""
        return self.coefs[i], None if self.intercepts is None else self.intercepts[i]

    def __repr__(self) -> str:
        first, last = self.lambdas[0], self.lambdas[-1]
        return (
            f"Path({len(self.lambdas)} λ from {first:.4g} to {last:.4g}, {self.n_nonzero[0]} to "
            f"{self.n_nonzero[-1]} coefficients, {self.solver}: {self.ledger})"
        )


def lambda_max(problem: Problem, data: Data, *, engine: QuestionEngine | None = None) -> float:
    """The smallest λ at which all penalised coefficients are zero, in one round.

    More rounds, for the intercept, where the loss has one and is not squared, logistic, softmax or Poisson;
    and for unpenalised coefficients, which are fitted first.
    """
    bound = bind(problem, data)
    server = Server(open_clients(engine, data))
    if not free_coefficients(bound).any():
        return start_of_path(bound, server)
    chosen, notes = choose(bound, "auto", MIN_ROWS, True)
    task = Solve(chosen, bound, chosen.init(bound, np.zeros(bound.layout.size)))
    [task] = opened_tasks([task], server, notes, data)
    return start_with_covariates(task, server)


def path(
    problem: Problem,
    data: Data,
    *,
    lambdas: ArrayLike | None = None,
    n_lambdas: int = 100,
    ratio: float | None = None,
    solver: Any = "auto",
    tol: float = 1e-8,
    max_rounds: int = 500,
    min_rows: int = 10,
    second_order: bool = True,
    at_once: int = AT_ONCE,
    engine: QuestionEngine | None = None,
) -> Path:
    """Solve for a decreasing sequence of λ; the λ of the problem's penalty does not matter.

    ``lambdas``, or ``n_lambdas`` of them, evenly spaced in the logarithm from λ_max down to ``ratio`` · λ_max
    (ratio None: 0.001, or 0.01 where there are fewer rows than features). With sufficient statistics all of
    it takes one round. Otherwise ``at_once`` neighbouring λ are solved in the same rounds, from the solution
    before them: more of them cost fewer rounds and more bytes. ``max_rounds`` holds for each such group; the
    other arguments are those of ``solve``.
    """
    bound = bind(problem, data)
    check_numbers(tol, max_rounds, min_rows)
    check_grid(n_lambdas, ratio, at_once)
    chosen, notes = choose(bound, solver, min_rows, second_order)
    server = Server(open_clients(engine, data))
    task = Solve(chosen, bound, chosen.init(bound, np.zeros(bound.layout.size)))
    [task] = opened_tasks([task], server, notes, data)
    grid = grid_of(task, server, lambdas, n_lambdas, ratio)
    points = walk([task], grid, at_once, server, tol, max_rounds)
    notes += absorbed(bound, points[-1][0].w, task.state.arrays["gradient"], data.feature_names)
    return assembled(bound, grid, [row[0] for row in points], server, task, notes, tol)


@dataclass(frozen=True)
class Point:
    """A solution on a path: flat, in the coordinates of the data, and the state's own."""

    w: Float
    state: Float
    loss: float
    certificate: Certificate


def opened_tasks(
    tasks: list[Solve],
    server: Server,
    notes: list[str],
    data: Data,
    left_out: Sequence[Arrays] = (),
) -> list[Solve]:
    """Tasks after their first answers; those that a client refuses begin again with gradients.

    ``notes`` say why the solver was chosen; where another takes over, they say that instead. ``left_out``
    are the statistics of the folds, where the tasks come from these (``fold_tasks``).
    """
    for _ in range(2):
        while any(not task.is_refused and "w" not in task.state.arrays for task in tasks):
            server.step(tasks)
        if not any(task.is_refused for task in tasks):
            break
        first = next(task for task in tasks if task.is_refused)
        questions = asked(tasks)
        if left_out:
            folds = [task.fold._replace(held_out=True) for task in tasks if task.fold]
            questions = [Asked(fold, refused(t)) for fold, t in zip(folds, left_out, strict=True)]
        instead = [fallback(task, np.zeros(task.problem.layout.size)) for task in tasks]
        if len({task.solver for task in instead}) > 1:  # in some folds nobody sends any
            instead = [gradients_only(task, np.zeros(task.problem.layout.size)) for task in tasks]
        notes[:] = [refusal(first, instead[0], why(questions, data, first.solver.min_rows))]
        tasks = instead
    notes += kept_back(tasks, data)
    return tasks


def walk(
    tasks: Sequence[Solve], grid: Float, at_once: int, server: Server, tol: float, max_rounds: int
) -> list[list[Point]]:
    """For each λ the solution of every task, ``at_once`` λ and all tasks in the same rounds."""
    points: list[list[Point]] = []
    left: list[Solve] = []
    states = [task.state for task in tasks]
    group = 1 if isinstance(tasks[0].solver, SufficientStatistics) else at_once
    if "points" in tasks[0].state.arrays and is_quadratic(tasks[0].problem):
        group = len(grid)  # what one λ learns of the matrix holds for all
    for first in range(0, len(grid), group):
        steps: list[Solve] = []
        for lam in grid[first : first + group]:
            for task, state in zip(tasks, states, strict=True):
                problem = task.problem.with_lam(float(lam))
                step = Solve(task.solver, problem, task.solver.again(problem, state), task.fold)
                step.certify(server.ledger.rounds)
                steps.append(step)
        server.run(steps, tol, server.ledger.rounds + max_rounds)
        found = [_point(step) for step in steps]
        left += [step for step in steps if step.certificate is None or step.certificate.relative > tol]
        points += [found[at : at + len(tasks)] for at in range(0, len(found), len(tasks))]
        states = [step.state for step in steps[-len(tasks) :]]
    not_converged(left, tol, server.ledger.rounds, len(grid) * len(tasks))
    return points


def _point(step: Solve) -> Point:
    assert step.certificate is not None
    w, a = step.solver.estimate(step.problem, step.state), step.state.arrays
    return Point(w, a["w"], float(a["loss"]), step.certificate)


def assembled(
    bound: BoundProblem,
    grid: Float,
    points: list[Point],
    server: Server,
    task: Solve,
    notes: list[str],
    tol: float,
) -> Path:
    """The path of its points."""
    models = [bound.layout.unpack(point.w) for point in points]
    return Path(
        problem=bound.problem,
        lambdas=grid,
        coefs=np.array([w for w, _ in models]),
        intercepts=np.array([b for _, b in models]) if bound.layout.n_intercepts else None,
        losses=np.array([point.loss for point in points]),
        certificates=[point.certificate for point in points],
        ledger=server.ledger,
        solver=task.solver.name,
        notes=notes,
        n_rows=int(task.state.arrays["rows"]),
        tol=tol,
    )


def check_grid(n_lambdas: Any, ratio: Any, at_once: Any) -> None:
    """Refuse numbers that make no grid."""
    for name, number in (("n_lambdas", n_lambdas), ("at_once", at_once)):
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
            raise ValueError(f"{name} must be a whole number ≥ 1, got {number!r}")
    if ratio is not None and not 0.0 < ratio < 1.0:
        raise ValueError(f"ratio must lie between 0 and 1, got {ratio!r}")


def grid_of(
    task: Solve, server: Server, lambdas: ArrayLike | None, n_lambdas: int, ratio: float | None
) -> Float:
    """The λ of a path, from the largest down."""
    if lambdas is not None:
        given = np.asarray(lambdas, dtype=np.float64)
        if given.ndim != 1 or not given.size or not np.isfinite(given).all() or (given <= 0.0).any():
            raise ValueError(f"lambdas must be positive numbers, got {lambdas!r}")
        return np.sort(given)[::-1]
    if free_coefficients(task.problem).any():
        largest = start_with_covariates(task, server)
    else:
        largest = start_of_path(task.problem, server, task.state.arrays)
    if largest == 0.0:
        raise ValueError("λ_max is 0: no feature is related to the target, so there is no path; give lambdas")
    few = int(task.state.arrays["rows"]) < task.problem.layout.n_coefficients
    ratio = (1e-2 if few else 1e-3) if ratio is None else ratio
    return np.asarray(largest * np.logspace(0.0, np.log10(ratio), n_lambdas))


def start_of_path(bound: BoundProblem, server: Server, moments: Arrays | None = None) -> float:
    """λ_max, from moments at hand where they are enough; else rounds are made for it."""
    solver, _ = choose(bound, "anderson", 0, False)
    zero = np.zeros(bound.layout.size)
    if has_null_model(bound):
        if moments is None:
            [moments] = server.ask([Question(solver, bound, opening(bound, zero, NONE, NONE))])
        gradient = null_model(bound, moments).gradient
    else:
        [total] = server.ask([Question(solver, bound, {"w": zero})])
        gradient = total["gradient"]
        if bound.layout.n_intercepts:
            alone = bound.with_lam(HUGE * (1.0 + float(np.abs(gradient).max())))
            task = Solve(solver, alone, solver.init(alone, zero))
            server.run([task], 1e-12, server.ledger.rounds + 100)
            gradient = task.state.arrays["gradient"]
    return _largest(bound, gradient)


def start_with_covariates(task: Solve, server: Server) -> float:
    """λ_max where some coefficients are unpenalised: fitted at a λ that keeps the others at zero."""
    bound, n = task.problem, task.problem.layout.n_coefficients
    penalised = ~free_coefficients(bound)
    lam = max(_largest(bound, task.state.arrays["gradient"]), 1e-3 * float(task.state.arrays["scales"][1]))
    for _ in range(40):
        lam *= 4.0
        alone = bound.with_lam(lam)
        step = Solve(task.solver, alone, task.solver.again(alone, task.state), task.fold)
        step.certify(server.ledger.rounds)
        server.run([step], 1e-12, server.ledger.rounds + 100)
        if not step.state.arrays["w"][:n][penalised].any():
            break
    return _largest(bound, step.state.arrays["gradient"])


def free_coefficients(bound: BoundProblem) -> Array:
    """Which coefficients carry no penalty, in the flat order."""
    unpenalised, layout = getattr(bound.problem.penalty, "unpenalised", None), bound.layout
    if unpenalised is None:
        return np.zeros(layout.n_coefficients, dtype=bool)
    return np.asarray(unpenalised(layout.shape).ravel(order=layout.order))


def _largest(bound: BoundProblem, gradient: Float) -> float:
    largest = float(bound.problem.penalty.lambda_max(bound.layout.unpack(gradient)[0]))
    if not math.isfinite(largest):
        raise ValueError(f"no λ of {bound.problem.penalty!r} makes every coefficient zero: give lambdas")
    return largest
