"""Stability selection (Meinshausen and Bühlmann 2010) with complementary pairs (Shah and Samworth 2013).

Each site splits its rows into two halves, B times. A column is stable if, at one λ of a grid, at least a
share π of the 2B halves select it. With q the mean number of columns that a half selects anywhere on the
grid, the expected number of falsely stable columns is at most

    q²/((2π − 1)p),       and at most C(π, B)·q²/p if the selection shares are unimodal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from unpooled._ledger import Ledger
from unpooled._validation import is_number
from unpooled._wording import counted, part_of, text_table
from unpooled.data.federated import FederatedData
from unpooled.data.folds import Fold, Halved
from unpooled.exact.choose import choose
from unpooled.exact.clients import QuestionEngine, open_clients
from unpooled.exact.path import AT_ONCE, check_grid, grid_of, opened_tasks, walk
from unpooled.exact.rounds import Server, Solve
from unpooled.exact.shrinkage import Blocks, shrinkage
from unpooled.exact.solve import bind, check_numbers
from unpooled.exact.sufficient_statistics import SufficientStatistics, quadratic
from unpooled.inference.argument_checks import feature_names, refuse_site_intercepts
from unpooled.inference.coordinate_descent import PASSES, TOLERANCE, supports
from unpooled.kernels.arrays import Array, Float
from unpooled.problem import Problem


@dataclass(eq=False, repr=False)
class Stability:
    """The result of ``stability_selection``.

    ``frequencies`` (L, p) is the share of halves that select a column at each of ``lambdas``, and
    ``mean_selected`` is q. ``false_positives`` bounds the expected number of falsely stable columns;
    ``false_positives_unimodal`` is a smaller bound, NaN where it does not apply.
    """

    names: tuple[str, ...]
    lambdas: Float
    frequencies: Float
    threshold: float
    n_subsamples: int
    mean_selected: float
    ledger: Ledger
    notes: list[str]

    @property
    def rounds(self) -> int:
        """Rounds of communication."""
        return self.ledger.rounds

    @property
    def probability(self) -> Float:
        """The largest selection share of each column over the grid."""
        return np.asarray(self.frequencies.max(axis=0))

    @property
    def selected(self) -> Array:
        """The stable columns."""
        return np.flatnonzero(self.probability >= self.threshold - 1e-12)

    @property
    def false_positives(self) -> float:
        """q²/((2π − 1)p)."""
        return self.mean_selected**2 / ((2.0 * self.threshold - 1.0) * len(self.names))

    @property
    def false_positives_unimodal(self) -> float:
        """C(π, B)·q²/p."""
        p, pairs = len(self.names), self.n_subsamples // 2
        return unimodal_factor(self.threshold, pairs, self.mean_selected / p) * self.mean_selected**2 / p

    def summary(self, most: int = 20) -> str:
        """The most frequently selected columns as a text table."""
        chosen = np.argsort(-self.probability, kind="stable")[:most]
        stable = set(self.selected.tolist())
        rows = [
            [self.names[j], float(self.probability[j]), "stable" if j in stable else ""]
            for j in chosen.tolist()
        ]
        lines = [
            text_table(["", "share", ""], rows),
            f"{counted(len(stable), 'stable column')} (share ≥ {self.threshold:g} of {self.n_subsamples} "
            "halves); "
            f"expected false ones ≤ {self.false_positives:.3g}",
            str(self.ledger),
        ]
        return "\n".join(lines + self.notes)

    def __repr__(self) -> str:
        return (
            f"Stability({part_of(len(self.selected), len(self.names), 'column')} stable, expected "
            f"false ones ≤ {self.false_positives:.3g}; {self.ledger})"
        )


def stability_selection(
    problem: Problem,
    data: FederatedData,
    *,
    n_subsamples: int = 100,
    threshold: float = 0.6,
    lambdas: ArrayLike | None = None,
    n_lambdas: int = 20,
    ratio: float = 0.1,
    max_false_positives: float | None = 1.0,
    seed: int = 0,
    solver: Any = "auto",
    tol: float = 1e-8,
    max_rounds: int = 500,
    min_rows: int = 10,
    second_order: bool = True,
    at_once: int = AT_ONCE,
    engine: QuestionEngine | None = None,
) -> Stability:
    """Selection shares over ``n_subsamples`` halves of every site's rows.

    The grid is ``lambdas``, or ``n_lambdas`` values from λ_max of all rows down to ``ratio`` · λ_max, cut
    where the bound would exceed ``max_false_positives`` (None: not cut). Sufficient statistics take one
    round, in which sites send the Gram matrices of all halves; other solvers solve all halves in the same
    rounds. A site's halves depend on the seed and the site's id only. The other arguments are those of
    ``path``.
    """
    bound = bind(problem, data)
    refuse_site_intercepts(problem, "stability_selection")
    check_numbers(tol, max_rounds, min_rows)
    check_grid(n_lambdas, ratio, at_once)
    _check_options(n_subsamples, threshold, max_false_positives)
    if len(bound.layout.shape) > 1:
        raise ValueError("stability_selection needs one vector of coefficients, not a matrix")
    chosen, notes = choose(bound, solver, min_rows, second_order)
    server = Server(open_clients(engine, data))
    zero, folds = np.zeros(bound.layout.size), [None, *halves(data, n_subsamples // 2, seed)]
    tasks = [Solve(chosen, bound, chosen.init(bound, zero), fold) for fold in folds]
    tasks = opened_tasks(tasks, server, notes, data)
    grid = grid_of(tasks[0], server, lambdas, n_lambdas, ratio)
    if isinstance(tasks[0].solver, SufficientStatistics) and _is_separable(tasks[0]):
        kept = np.array([_selected(task, grid, notes) for task in tasks[1:]])
    else:
        points = walk(tasks[1:], grid, at_once, server, tol, max_rounds)
        n = bound.layout.n_coefficients
        kept = np.array([[row[t].w[:n] != 0.0 for row in points] for t in range(n_subsamples)])
    if lambdas is None and max_false_positives is not None:
        kept, grid = _within(kept, grid, threshold, max_false_positives)
    return Stability(
        names=feature_names(data),
        lambdas=grid,
        frequencies=kept.mean(axis=0),
        threshold=float(threshold),
        n_subsamples=n_subsamples,
        mean_selected=float(kept.any(axis=1).sum(axis=1).mean()),
        ledger=server.ledger,
        notes=notes,
    )


def _is_separable(task: Solve) -> bool:
    h = shrinkage(task.problem)
    return isinstance(h, Blocks) and len(h.weight) == len(h.of)


def _selected(task: Solve, grid: Float, notes: list[str]) -> Array:
    """(L, p): the columns that one half selects at each λ, from its Gram matrix."""
    p = task.problem.layout.n_coefficients
    H, c, _ = quadratic(task.problem, task.state.arrays)
    penalties = [shrinkage(task.problem.with_lam(float(lam))) for lam in grid]
    weight = np.array([h.weight[h.of[:p]] for h in penalties if isinstance(h, Blocks)])
    ridge = np.array([h.ridge[:p] for h in penalties if isinstance(h, Blocks)])
    out = np.empty((len(grid), p), dtype=np.bool_)
    tolerance = TOLERANCE * max(float(np.abs(c).max()), 1e-300)
    failed = supports(np.ascontiguousarray(H), c, weight, ridge, tolerance, PASSES, out)
    if failed:
        notes.append(f"{failed} solutions on one half did not converge: use larger lambdas")
    return out


def _within(kept: Array, grid: Float, threshold: float, most: float) -> tuple[Array, Float]:
    """The part of the grid on which the bound is at most ``most``; at least the first λ."""
    q = np.logical_or.accumulate(kept, axis=1).sum(axis=2).mean(axis=0)
    bounds = np.square(q) / ((2.0 * threshold - 1.0) * kept.shape[2])
    count = max(1, int(np.sum(bounds <= most)))
    return kept[:, :count], grid[:count]


def _check_options(n_subsamples: Any, threshold: Any, most: Any) -> None:
    whole = isinstance(n_subsamples, int | np.integer) and not isinstance(n_subsamples, bool)
    if not whole or n_subsamples < 2 or n_subsamples % 2:
        raise ValueError(f"n_subsamples must be even, as halves come in pairs; got {n_subsamples!r}")
    if not is_number(threshold) or not 0.5 < threshold <= 1.0:
        raise ValueError(f"threshold must be above 0.5 and at most 1, got {threshold!r}")
    if most is not None and (not is_number(most) or not most > 0.0):
        raise ValueError(f"max_false_positives must be positive or None, got {most!r}")


def halves(data: FederatedData, pairs: int, seed: int) -> list[Fold]:
    """Both halves of every pair. With an odd number of rows, a site leaves one row out of both."""
    alone = np.flatnonzero(data.sizes < 2)
    if alone.size:
        raise ValueError(f"client {data.ids[alone[0]]!r} has one row, which cannot be split into halves")
    return [Fold(Halved(seed, b), half, held_out=True) for b in range(pairs) for half in (0, 1)]


def unimodal_factor(threshold: float, pairs: int, share: float) -> float:
    """C(π, B) of Shah and Samworth (2013, theorem 2), for columns selected with probability ≤ ``share``."""
    lowest = min(0.5 + share**2, 0.5 + 0.5 / pairs + 0.75 * share**2)
    if share > 1.0 / np.sqrt(3.0) or threshold <= lowest:
        return float("nan")
    if threshold <= 0.75:
        return 0.5 / (2.0 * threshold - 1.0 - 0.5 / pairs)
    return 4.0 * (1.0 - threshold + 0.5 / pairs) / (1.0 + 1.0 / pairs)
