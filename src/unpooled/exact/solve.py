"""``solve``: the pooled answer without pooling, with a proof."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from unpooled._validation import is_number
from unpooled._warned import warn
from unpooled._wording import counted, part_of
from unpooled.data.base import Data, check_data
from unpooled.data.folds import BySite
from unpooled.exact.anderson import AndersonProxGradient
from unpooled.exact.choose import choose
from unpooled.exact.clients import QuestionEngine, open_clients
from unpooled.exact.fit import Fit
from unpooled.exact.prox_newton import ProxNewton
from unpooled.exact.refusals import Asked, why
from unpooled.exact.rounds import Server, Solve, columns
from unpooled.exact.site_intercept import absorbed
from unpooled.exact.sufficient_statistics import SufficientStatistics
from unpooled.kernels.arrays import Float
from unpooled.problem import BoundProblem, Problem


def solve(
    problem: Problem,
    data: Data,
    *,
    solver: Any = "auto",
    tol: float = 1e-8,
    max_rounds: int = 500,
    min_rows: int = 10,
    second_order: bool = True,
    engine: QuestionEngine | None = None,
    w0: ArrayLike | None = None,
    intercept0: ArrayLike | None = None,
) -> Fit:
    """minimise  Σ_k π_k L_k(w) + h(w), to a certified gap, in as few rounds as possible.

    Parameters
    ----------
    problem, data : what to solve on what. With π_k ∝ n_k, the default of the data, the objective is that
        of the pooled rows.
    solver : "auto", "sufficient_statistics", "prox_newton", "anderson", "fista", or a solver object.
    tol : stop when the certificate's gap is at most so large a part of its scale (see ``Certificate``).
    max_rounds : stop after so many rounds, with a ConvergenceWarning.
    min_rows : a client with fewer rows sends no Gram matrix and no Hessian, and one with a column in which
        fewer rows stand out from the rest leaves that column out of them. Gradients of all clients then
        decide, and the matrices that are sent set the steps. 0 lets every client send all.
    second_order : whether Gram matrices and Hessians may be asked for at all.
    engine : where clients run; ``engines.Local()`` where None.
    w0, intercept0 : the start; zero where None.
    """
    bound = bind(problem, data)
    check_numbers(tol, max_rounds, min_rows)
    chosen, notes = choose(bound, solver, min_rows, second_order)
    start = bound.layout.pack(w0, intercept0, "w0", "intercept0")
    server = Server(open_clients(engine, data))
    task = Solve(chosen, bound, chosen.init(bound, start))
    server.run([task], tol, max_rounds)
    if task.is_refused:
        instead = fallback(task, start)
        notes = [refusal(task, instead, why(asked([task]), data, task.solver.min_rows))]
        task = instead
        server.run([task], tol, max_rounds)
    notes += kept_back([task], data)
    fit = result(task, server, notes, tol, max_rounds)
    arrays = task.state.arrays
    fit.notes.extend(absorbed(bound, arrays["w"], arrays["gradient"], data.feature_names))
    return fit


def bind(problem: Problem, data: Data) -> BoundProblem:
    """The problem laid out for the data; what exact solvers cannot solve is refused."""
    if not isinstance(problem, Problem):
        raise TypeError(f"problem must be a Problem(loss, penalty), got {problem!r}")
    check_data(data)
    if not math.isinf(problem.ball):
        raise ValueError(f"exact solvers do not know the constraint ball={problem.ball:g}; simulate does")
    return problem.bind(data)


def check_numbers(tol: Any, max_rounds: Any, min_rows: Any) -> None:
    """Refuse tolerances and counts that are none."""
    if not is_number(tol) or not 0.0 < tol < math.inf:
        raise ValueError(f"tol must be a positive number, got {tol!r}")
    for name, number, least in (("max_rounds", max_rounds, 1), ("min_rows", min_rows, 0)):
        if isinstance(number, bool) or not is_number(number) or not least <= number < math.inf:
            raise ValueError(f"{name} must be a whole number ≥ {least}, got {number!r}")
        if number != int(number):
            raise ValueError(f"{name} must be a whole number ≥ {least}, got {number!r}")


def refusal(task: Solve, instead: Solve, because: str) -> str:
    """A sentence that says which solver could not go on and why, and which one took over."""
    least, how = task.solver.min_rows, "it needs gradients only"
    if instead.solver.is_second_order:
        how = "the gradients of all clients decide, and the matrices that were sent set the steps"
    return (
        f"{task.solver.name} {task.solver.was} refused because {because}: Gram matrices and Hessians could "
        f"give rows away there. {instead.solver.name} {instead.solver.was} used instead: {how}; "
        f"min_rows={least} sets the limit."
    )


def kept_back(tasks: Sequence[Solve], data: Data) -> list[str]:
    """A sentence where prox-Newton went on without the matrices of some clients."""
    if not any("kept_back" in task.state.arrays for task in tasks):
        return []
    least = tasks[0].solver.min_rows
    return [
        f"{why(asked(tasks), data, least)}: Hessians could give rows away there. There gradients were used, "
        f"and the Hessians of the others set the steps; min_rows={least} sets the limit."
    ]


def asked(tasks: Sequence[Solve]) -> list[Asked]:
    """Whose rows each task has asked about, and how many clients refused or kept something back."""
    states = [(task.fold, task.state.arrays) for task in tasks]
    return [Asked(fold, a.get("kept_back", a["refused"])) for fold, a in states]


def fallback(task: Solve, start: Float) -> Solve:
    """The same with the matrices that were sent and the gradients of all; gradients only where none was."""
    newton = ProxNewton(task.solver.min_rows)
    if newton.lacks(task.problem) is None:
        state = newton.taken_over(task.problem, task.state, start)
        if state is not None:
            return Solve(newton, task.problem, state, task.fold)
    return gradients_only(task, start)


def gradients_only(task: Solve, start: Float) -> Solve:
    """The same with gradients only."""
    solver = AndersonProxGradient(task.solver.min_rows)
    return Solve(solver, task.problem, solver.init(task.problem, start), task.fold)


def result(task: Solve, server: Server, notes: list[str], tol: float, max_rounds: int) -> Fit:
    """The fit, with a warning where it is not certified as asked."""
    certificate = task.certificate
    if certificate is None:
        raise ValueError(f"max_rounds={max_rounds} left no round to solve in: {notes[-1]}")
    converged = certificate.relative <= tol
    if not converged:
        not_converged([task], tol, server.ledger.rounds)
    w, intercept = task.problem.layout.unpack(task.solver.estimate(task.problem, task.state))
    if "center" in task.state.arrays:
        notes.append("a mean is very large beside its spread: statistics were asked for again, centred.")
    return Fit(
        problem=task.problem.problem,
        w=w,
        intercept=intercept,
        certificate=certificate,
        converged=converged,
        tol=tol,
        ledger=server.ledger,
        solver=task.solver.name,
        history=columns(task.history),
        notes=notes,
        statistics=task.state.arrays if isinstance(task.solver, SufficientStatistics) else {},
    )


def not_converged(tasks: Sequence[Solve], tol: float, rounds: int, n_fits: int = 1) -> None:
    """One warning, where any of ``tasks``, those of ``n_fits`` that stopped above the tolerance, is given."""
    from sklearn.exceptions import ConvergenceWarning

    if not tasks:
        return
    worst = max(tasks, key=lambda task: task.certificate.relative if task.certificate else math.inf)
    assert worst.certificate is not None
    found = f"{worst.certificate.kind} of {worst.certificate.relative:.2g} of its scale, above tol={tol:g}"
    message = f"{worst.solver.name} stopped after {counted(rounds, 'round')} with a {found}: {_remedy(worst)}"
    if n_fits > 1:
        word = "site" if worst.fold and isinstance(worst.fold.folds, BySite) else "fold"
        where = "" if worst.fold is None else f" without {word} {worst.fold.number + 1}"
        message = (
            f"{worst.solver.name} stopped after {counted(rounds, 'round')} before "
            f"{part_of(len(tasks), n_fits, 'fit', 'was', 'were')} done; the worst, at "
            f"λ = {worst.problem.problem.penalty.lam:.4g}{where}, has a {found}: {_remedy(worst)}. "
            "The certificates of the result show which"
        )
    warn(message, ConvergenceWarning)


def _remedy(task: Solve) -> str:
    """What to do about a solve that is not certified as asked."""
    if task.solver.is_final(task.state):
        return "no further statistics can help, the gap is at rounding level: raise tol"
    if task.is_stalled:
        return "the last rounds made no progress: raise tol, or check that the problem has an optimum"
    if task.solver.is_second_order:
        return "raise max_rounds or tol"
    return "raise max_rounds or tol, scale the features, or allow second-order statistics"
