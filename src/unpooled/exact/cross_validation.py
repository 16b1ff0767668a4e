"""Cross-validation inside the sites, or over them: rows stay where they are, and folds share their rounds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from unpooled._ledger import Ledger
from unpooled._wording import part_of
from unpooled.algorithms.base import State
from unpooled.data.base import Data
from unpooled.data.federated import FederatedData
from unpooled.data.folds import BySite, Dealt, Fold, Folds, Given
from unpooled.exact.base import ExactSolver
from unpooled.exact.certificate import Certificate
from unpooled.exact.choose import choose
from unpooled.exact.clients import Question, QuestionEngine, open_clients
from unpooled.exact.fold_scale import (
    check_fold_scale,
    deviations,
    divided,
    without_rounding,
)
from unpooled.exact.path import AT_ONCE, Path, Point, assembled, check_grid, grid_of, opened_tasks, walk
from unpooled.exact.rounds import Server, Solve
from unpooled.exact.site import unpacked
from unpooled.exact.site_intercept import absorbed, pooled_mean
from unpooled.exact.solve import bind, check_numbers
from unpooled.exact.sufficient_statistics import SufficientStatistics
from unpooled.kernels.arrays import Array, Arrays, Float
from unpooled.problem import BoundProblem, Problem

RULES = ("min", "1se")


@dataclass(eq=False, repr=False)
class CrossValidation:
    """Held-out losses at each λ, and the path on all rows.

    ``losses`` (λ, fold) are mean losses of held-out rows, for ``Squared`` halves of squared errors; ``mean``
    weighs folds by ``fold_weights``, ``se`` is its standard error. ``index`` is the position of the chosen λ:
    the one of least mean ("min"), or the largest whose mean is within one standard error of that ("1se").
    ``fold_certificates`` are those of the fits without each fold, a list for each λ.
    """

    path: Path
    losses: Float
    fold_weights: Float
    mean: Float
    se: Float
    rule: str
    index: int
    fold_certificates: list[list[Certificate]] = field(default_factory=list)

    @property
    def lam(self) -> float:
        """The chosen λ."""
        return float(self.path.lambdas[self.index])

    @property
    def model(self) -> tuple[Float, Any]:
        """(w, intercept) at the chosen λ, from all rows."""
        return self.path.model(self.index)

    @property
    def ledger(self) -> Ledger:
        """What crossed the network, all in all."""
        return self.path.ledger

    @property
    def rounds(self) -> int:
        """Rounds of communication, all of them."""
        return self.path.ledger.rounds

    def __repr__(self) -> str:
        at = f"{self.mean[self.index]:.5g} ± {self.se[self.index]:.2g}"
        return f"CrossValidation(λ = {self.lam:.4g} by {self.rule!r}, held-out loss {at}; {self.ledger})"


def cross_validate(
    problem: Problem,
    data: Data,
    *,
    folds: int | str | ArrayLike = 5,
    rule: str = "min",
    seed: int = 0,
    lambdas: ArrayLike | None = None,
    n_lambdas: int = 100,
    ratio: float | None = None,
    solver: Any = "auto",
    tol: float = 1e-8,
    max_rounds: int = 500,
    min_rows: int = 10,
    second_order: bool = True,
    at_once: int = AT_ONCE,
    standardise_folds: bool = False,
    fold_rows: int = 0,
    engine: QuestionEngine | None = None,
) -> CrossValidation:
    """Choose λ by the loss on rows that were left out.

    ``folds``: a number (each client deals its own rows into so many, see ``deal``), "sites" (leave one site
    out at a time), or one fold number per row in the order of the data. The grid of λ is that of all rows,
    and the arguments are those of ``path``. With sufficient statistics everything takes one round: each
    fold's are sent apart. Otherwise the folds and the fit to all rows are asked in the same rounds.

    Where every site has an intercept, rows left out are predicted by that of the site's other rows. Where
    this is not finite (labels of one class, a class that is absent, counts of zero only) the site adds half a
    row, whose margin is the mean of theirs and whose target is the mean of all sites' training rows; a site
    without other rows takes that mean for the level of its rows. This costs no round more, and no intercept
    leaves a site.

    ``fold_rows``: a client deals its rows into no more folds than leave it so many rows in each, and stays
    whole in one fold where it has fewer than twice as many. With ``fold_rows=min_rows`` small clients need
    not keep their Gram matrices and Hessians back, which saves rounds.

    ``standardise_folds``: whether the penalty of each fold's fit sees columns of variance one over that
    fold's training rows, as in glmnet, instead of columns as they are. Only with sufficient statistics,
    which tell these variances; the fit to all rows takes the columns as they are.
    """
    bound = bind(problem, data)
    check_numbers(tol, max_rounds, min_rows)
    check_grid(n_lambdas, ratio, at_once)
    if rule not in RULES:
        raise ValueError(f"rule must be 'min' or '1se', got {rule!r}")
    if problem.has_site_intercepts and isinstance(folds, str):
        raise ValueError("folds='sites' leaves out sites whose intercepts nobody then knows: use a number")
    check_fold_rows(fold_rows, folds, problem)
    dealt, count = folds_of(folds, data, seed, fold_rows)
    chosen, notes = choose(bound, solver, min_rows, second_order)
    if standardise_folds:
        check_fold_scale(chosen, bound, notes)
    server = Server(open_clients(engine, data))
    tasks, left_out = fold_tasks(chosen, bound, dealt, count, server, standardise_folds)
    tasks = opened_tasks(tasks, server, notes, data, left_out)
    if standardise_folds:  # a client may have refused
        check_fold_scale(tasks[0].solver, bound, notes)
    grid = grid_of(tasks[0], server, lambdas, n_lambdas, ratio)
    points = walk(tasks, grid, at_once, server, tol, max_rounds)
    if left_out and isinstance(tasks[0].solver, SufficientStatistics):
        weights = np.array([float(total["weight"]) for total in left_out])
        models = [np.array([row[f].state for row in points]) for f in range(1, count + 1)]
        losses = np.array([_held_out(m, t) for m, t in zip(models, left_out, strict=True)]).T
    else:
        losses, weights = _scored(tasks, points, dealt, server)
    if isinstance(dealt, Dealt) and chosen.is_second_order and not problem.has_site_intercepts:
        notes += _whole_sites(dealt, data.sizes, min_rows, problem, server.ledger.rounds)
    if isinstance(folds, str):
        notes.append("one site was left out at a time: differences of such fits are about single sites.")
    notes += absorbed(bound, points[-1][0].w, tasks[0].state.arrays["gradient"], data.feature_names)
    whole = assembled(bound, grid, [row[0] for row in points], server, tasks[0], notes, tol)
    found = chosen_by(rule, whole, losses, weights)
    return replace(found, fold_certificates=[[point.certificate for point in row[1:]] for row in points])


def deal(data: FederatedData, folds: int, seed: int, fold_rows: int = 0) -> Array:
    """A fold for every row: each client shuffles its rows and deals them out, beginning at a fold of its own.

    A client's folds depend on the seed and its id, not on the other clients; ``fold_rows`` is that of
    ``cross_validate``.
    """
    return numbers_of(Dealt(folds, seed, fold_rows), data)


def numbers_of(folds: Folds, data: Data) -> Array:
    """The fold of each row, which sites work out alike."""
    sizes = data.sizes.tolist()
    return np.concatenate([folds.of(k, name, sizes[k]) for k, name in enumerate(data.ids)])


def check_fold_rows(fold_rows: Any, folds: Any, problem: Problem) -> None:
    """Refuse numbers that are none, and folds that no client deals."""
    if isinstance(fold_rows, bool) or not isinstance(fold_rows, int | np.integer) or fold_rows < 0:
        raise ValueError(f"fold_rows must be a whole number ≥ 0, got {fold_rows!r}")
    if fold_rows and (isinstance(folds, str) or np.ndim(folds)):
        raise ValueError(f"fold_rows={fold_rows} is for folds that clients deal: give their number as folds")
    if fold_rows and problem.has_site_intercepts:
        raise ValueError(
            f"fold_rows={fold_rows} leaves out whole sites, whose intercepts nobody then knows: leave it at 0"
        )


def _whole_sites(dealt: Dealt, sizes: Array, least: int, problem: Problem, rounds: int) -> list[str]:
    """What ``fold_rows`` would save, where clients large enough to share have folds that are not."""
    small = int(np.sum((sizes >= least) & (sizes // dealt.count < least)))
    if not small or dealt.least >= least:
        return []
    saved = "which saves rounds"
    if problem.linear is not None and problem.linear.is_least_squares and (sizes >= least).all():
        saved = f"and where no column is rare in a fold, everything takes one round instead of {rounds}"
    return [
        f"{part_of(small, len(sizes), 'client', 'has', 'have')} enough rows to share matrices, but not in "
        f"each of {dealt.count} folds. With fold_rows={least} such clients deal into fewer folds, or stay "
        f"whole in one, {saved}. folds='sites' and select(path, 'ebic') need no small folds either."
    ]


def folds_of(folds: Any, data: Data, seed: int, fold_rows: int = 0) -> tuple[Folds, int]:
    """How rows get their folds, and how many folds there are."""
    dealt: Folds
    if isinstance(folds, str):
        if folds != "sites":
            raise ValueError(f"folds must be a number, 'sites' or one number per row, got {folds!r}")
        dealt, count = BySite(), data.n_clients
    elif np.ndim(folds) == 0:
        if isinstance(folds, bool) or not isinstance(folds, int | np.integer) or folds < 2:
            raise ValueError(f"folds must be a whole number ≥ 2, got {folds!r}")
        dealt, count = Dealt(int(folds), seed, int(fold_rows)), int(folds)
    else:
        given = np.asarray(folds)
        if data.engine is not None:
            raise ValueError("folds must be a number or 'sites': the sites alone know their rows")
        if given.shape != (data.n_rows,) or given.dtype.kind not in "iu" or given.min() < 0:
            raise ValueError(f"folds must hold {data.n_rows} whole numbers from 0, one per row")
        dealt, count = Given(given, np.append(0, np.cumsum(data.sizes))), int(given.max()) + 1
    sizes = np.bincount(numbers_of(dealt, data), minlength=count)
    if count < 2 or not sizes.all():
        empty = int(np.count_nonzero(sizes == 0))
        raise ValueError(
            f"there must be two folds, and none empty: {part_of(empty, count, 'fold', 'has', 'have')} no rows"
            + (f"; lower fold_rows={fold_rows}, or take fewer folds" if fold_rows else "")
        )
    return dealt, count


def fold_tasks(
    solver: ExactSolver, bound: BoundProblem, folds: Folds, count: int, server: Server, scaled: bool = False
) -> tuple[list[Solve], list[Arrays]]:
    """The fit to all rows and those without a fold; the folds' statistics, where they suffice."""
    # fold by fold, rows less the site's mean do not add up: sites then centre each training set
    if isinstance(solver, SufficientStatistics) and not bound.problem.has_site_intercepts:
        return _from_statistics(solver, bound, folds, count, server, scaled)
    zero = np.zeros(bound.layout.size)
    kept = [None, *(Fold(folds, f, held_out=False) for f in range(count))]
    return [Solve(solver, bound, solver.init(bound, zero), fold) for fold in kept], []


def _from_statistics(
    solver: SufficientStatistics, bound: BoundProblem, dealt: Folds, count: int, server: Server, scaled: bool
) -> tuple[list[Solve], list[Arrays]]:
    """The fit to all rows and those without a fold, from statistics sent fold by fold in one round.

    ``scaled``: each of the latter, and the statistics of its fold, in units of its training rows' deviations.
    """
    folds = [Fold(dealt, f, held_out=True) for f in range(count)]
    state = solver.init(bound, np.zeros(bound.layout.size))
    for _ in range(2):  # the second where statistics have to be centred
        question = solver.broadcast(bound, state)
        totals = server.ask([Question(solver, bound, question, fold) for fold in folds])
        before, state = state, solver.server_update(bound, state, pooled(totals))
        if "w" in state.arrays or state.arrays["refused"].any():
            break
    tasks, left_out = [Solve(solver, bound, state)], list(totals)
    is_refused = state.arrays["refused"].any()
    if (
        bound.layout.n_intercepts and not is_refused
    ):  # the coordinates of all rows, also where a fold's columns hardly vary
        before = State(before.round, {"center": np.zeros(bound.layout.size)} | before.arrays)
    for f, fold in enumerate(folds):
        rest = pooled(totals[:f] + totals[f + 1 :])
        if scaled and not is_refused:
            d = deviations(rest)
            rest, left_out[f] = divided(rest, d), divided(totals[f], d)
        if bound.layout.n_intercepts and not is_refused:
            rest = without_rounding(rest)
        own = solver.server_update(bound, before, rest)
        if is_refused:  # another solver takes over in all folds
            own = State(own.round, own.arrays | {"refused": state.arrays["refused"]})
        tasks.append(Solve(solver, bound, own, fold._replace(held_out=False)))
    return tasks, left_out


def pooled(totals: list[Arrays]) -> Arrays:
    """The answer of several folds together."""
    weight = sum(float(total["weight"]) for total in totals)
    out: Arrays = {}
    for name in set[str]().union(*totals):
        parts = [total for total in totals if name in total]
        counts = parts[0][name].dtype.kind in "iu" or name == "weight"
        terms = [t[name] if counts else t[name] * (float(t["weight"]) / weight) for t in parts]
        out[name] = np.asarray(sum(terms[1:], terms[0]))
    return out


def _held_out(models: Float, total: Arrays) -> Float:
    """½ Σ s (x·v + b − y)² of a fold, from its statistics, for each row (v, b) of ``models``."""
    p = len(total["mean_x"])
    V, b = models[:, :p], models[:, p:].sum(axis=1)
    square = np.sum(V @ unpacked(total["gram"], p) * V, axis=1) + np.square(b) + float(total["mean_yy"])
    cross = V @ total["mean_xt"] - b * (V @ total["mean_x"]) + b * float(total["mean_t"][0])
    return np.asarray(np.maximum(0.5 * square - cross, 0.0))


def _scored(
    tasks: list[Solve], points: list[list[Point]], folds: Folds, server: Server
) -> tuple[Float, Float]:
    """The held-out losses of every fold's path and the folds' weights, in one round."""
    questions = []
    for f, task in enumerate(tasks[1:]):
        models = {"models": np.array([row[f + 1].w for row in points])}
        if task.problem.problem.has_site_intercepts:
            models["pooled"] = pooled_mean(task.problem, task.state.arrays)
        questions.append(Question(task.solver, task.problem, models, Fold(folds, f, held_out=True)))
    totals = server.ask(questions)
    return np.array([t["losses"] for t in totals]).T, np.array([float(t["weight"]) for t in totals])


def chosen_by(rule: str, path: Path, losses: Float, weights: Float) -> CrossValidation:
    """The λ that a rule takes."""
    weights = weights / weights.sum()
    mean = losses @ weights
    se = np.sqrt(np.square(losses - mean[:, None]) @ weights / (losses.shape[1] - 1))
    index = int(np.argmin(mean))
    if rule == "1se":
        index = int(np.argmax(mean <= mean[index] + se[index]))
    return CrossValidation(path, losses, weights, mean, se, rule, index)
