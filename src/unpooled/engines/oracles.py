"""The clients of exact solvers in this process: each is asked in turn, and the answers are summed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from unpooled.algorithms.exact.site import Site
from unpooled.arrays import Array, Arrays

if TYPE_CHECKING:
    from unpooled.algorithms.exact.base import ExactSolver
    from unpooled.data import FederatedData
    from unpooled.problem import BoundProblem


class Fold(NamedTuple):
    """Rows that a question is about: those in a fold, or those not in it (``held_out`` False)."""

    of: Array  # the fold of each row of the data
    number: int
    held_out: bool


class Question(NamedTuple):
    """What a solver asks about a problem; about all rows, or some of a cross-validation's."""

    solver: ExactSolver
    problem: BoundProblem
    arrays: Arrays
    fold: Fold | None = None


@dataclass(frozen=True)
class Traffic:
    """What one round moved, summed over clients: numbers up and down; the kinds of statistics sent up."""

    clients: int
    floats_up: int
    floats_down: int
    kinds: tuple[str, ...]


class OracleClients:
    """All clients of a data set. Rounds with several questions ask them at once."""

    def __init__(self, data: FederatedData):
        self.data = data
        self.sites = [Site.of(client) for client in data]

    def ask(self, questions: Sequence[Question]) -> tuple[list[Arrays], Traffic]:
        """The sum Σ_k π_k up_k of the answers to each question, divided by ``weight``, that of its rows.

        Numbers of a whole type are counts and are added. Clients are summed in the order of their ids.
        """
        totals: list[Arrays] = []
        up, down, kinds, asked = 0, 0, set[str](), set[int]()
        for question in questions:
            total: Arrays = {}
            weight = 0.0
            for k, site in enumerate(self.sites):
                site = self._rows(k, site, question.fold, "models" in question.arrays)
                if not site.n_rows:
                    continue
                answer = question.solver.answer(question.problem, site, question.arrays)
                pi = float(self.data.weights[k])
                asked.add(k)
                up += 1 + sum(array.size for array in answer.values())
                down += sum(array.size for array in question.arrays.values())
                weight += pi * float(site.share.sum())
                for name, array in answer.items():
                    part = array if array.dtype.kind in "iu" else pi * array
                    total[name] = total[name] + part if name in total else part
            if not total:
                raise ValueError("a fold holds no rows: use fewer folds")
            mean = {name: a if a.dtype.kind in "iu" else np.asarray(a / weight) for name, a in total.items()}
            totals.append(mean | {"weight": np.array(weight)})
            kinds |= set(total)
        return totals, Traffic(len(asked), up, down, tuple(sorted(kinds)))

    def collect(self, answer: Callable[[Site], Arrays]) -> tuple[list[Arrays], Traffic]:
        """Every client's own answer, in the order of ids, for what is merged in other ways than by a sum."""
        answers = [answer(site) for site in self.sites]
        up = sum(array.size for each in answers for array in each.values())
        return answers, Traffic(len(answers), up, 0, tuple(sorted(set[str]().union(*answers))))

    def _rows(self, k: int, site: Site, fold: Fold | None, with_rest: bool) -> Site:
        if fold is None:
            return site
        own = fold.of[self.data.offsets[k] : self.data.offsets[k + 1]]
        chosen = (own == fold.number) == fold.held_out
        part = site.rows(np.flatnonzero(chosen))
        return replace(part, rest=site.rows(np.flatnonzero(~chosen))) if with_rest else part
