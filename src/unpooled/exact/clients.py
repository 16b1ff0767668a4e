"""The clients of exact solvers: each is asked in turn, and the answers are summed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import numpy as np

from unpooled.data.base import Data
from unpooled.data.folds import Fold, Folds
from unpooled.exact.site import Site
from unpooled.kernels.arrays import Array, Arrays

if TYPE_CHECKING:
    from unpooled.data.federated import FederatedData
    from unpooled.exact.base import ExactSolver
    from unpooled.problem import BoundProblem


class Question(NamedTuple):
    """What a solver asks about a problem; about all rows, or some of a cross-validation's."""

    solver: ExactSolver
    problem: BoundProblem
    arrays: Arrays
    fold: Fold | None = None


class Answer(NamedTuple):
    """What client k answers; ``share`` is the weight of the rows that it is about."""

    k: int
    arrays: Arrays
    share: float


@dataclass(frozen=True)
class Traffic:
    """What one round moved, summed over clients: numbers up and down; the kinds of statistics sent up."""

    clients: int
    floats_up: int
    floats_down: int
    kinds: tuple[str, ...]


class Sites:
    """Clients whose rows are here, under their numbers ``numbers`` in the whole federation."""

    def __init__(self, data: FederatedData, numbers: Array | None = None):
        self.ids = data.ids
        self.numbers = range(data.n_clients) if numbers is None else numbers.tolist()
        self.sites = [Site.of(client) for client in data]
        self._dealt: dict[tuple[Folds, int], Array] = {}

    def answers(self, question: Question) -> Iterator[Answer]:
        """The answers of the clients that have such rows, in the order of their ids."""
        for j, k in enumerate(self.numbers):
            site = self._rows(j, question.fold, "models" in question.arrays)
            if site.n_rows:
                answer = question.solver.answer(question.problem, site, question.arrays)
                yield Answer(k, answer, float(site.share.sum()))

    def _rows(self, j: int, fold: Fold | None, with_rest: bool) -> Site:
        site = self.sites[j]
        if fold is None:
            return site
        if (fold.folds, j) not in self._dealt:
            self._dealt[fold.folds, j] = fold.folds.of(self.numbers[j], self.ids[j], site.n_rows)
        chosen = (self._dealt[fold.folds, j] == fold.number) == fold.held_out
        part = site.rows(np.flatnonzero(chosen))
        return replace(part, rest=site.rows(np.flatnonzero(~chosen))) if with_rest else part


class Respondents(Protocol):
    """Clients that answer questions, wherever they are."""

    def ask(self, questions: Sequence[Question]) -> tuple[list[Arrays], Traffic]:
        """The sum of the answers to each question (``summed``), and what it took."""

    def collect(self, answer: Callable[[Site], Arrays]) -> tuple[list[Arrays], Traffic]:
        """Every client's own answer, in the order of ids."""


class QuestionEngine(Protocol):
    """What an exact solver needs of an engine."""

    def open_oracles(self, data: Any) -> Respondents:
        """The clients of ``data``, ready for questions."""


def open_clients(engine: QuestionEngine | None, data: Data) -> Respondents:
    """The engine's clients, ready for questions; those of the data's own engine where none is given."""
    engine = engine or data.engine
    if engine is None:
        return OracleClients(cast("FederatedData", data))
    if not callable(getattr(engine, "open_oracles", None)):
        raise TypeError(f"engine must be one of unpooled.engines, such as engines.Local(), got {engine!r}")
    return engine.open_oracles(data)


class OracleClients:
    """All clients of a data set. Rounds with several questions ask them at once."""

    def __init__(self, data: FederatedData):
        self.weights = data.weights
        self.clients = Sites(data)

    def ask(self, questions: Sequence[Question]) -> tuple[list[Arrays], Traffic]:
        """The sum of the answers to each question (``summed``), and what it took."""
        return asked(questions, [self.clients.answers(question) for question in questions], self.weights)

    def collect(self, answer: Callable[[Site], Arrays]) -> tuple[list[Arrays], Traffic]:
        """Every client's own answer, in the order of ids, for what is merged in other ways than by a sum."""
        answers = [answer(site) for site in self.clients.sites]
        return answers, collected(answers)


def asked(
    questions: Sequence[Question], answers: Sequence[Iterable[Answer]], weights: Array
) -> tuple[list[Arrays], Traffic]:
    """The sum of the answers to each question, and what crossed for them."""
    totals: list[Arrays] = []
    up, down, who = 0, 0, set[int]()

    def counted(question: Question, given: Iterable[Answer]) -> Iterator[Answer]:
        nonlocal up, down
        for answer in given:
            who.add(answer.k)
            up += 1 + sum(array.size for array in answer.arrays.values())
            down += sum(array.size for array in question.arrays.values())
            yield answer

    for question, given in zip(questions, answers, strict=True):
        totals.append(summed(counted(question, given), weights))
    kinds = set[str]().union(*totals) - {"weight"}
    return totals, Traffic(len(who), up, down, tuple(sorted(kinds)))


def summed(answers: Iterable[Answer], weights: Array) -> Arrays:
    """Σ_k π_k up_k divided by ``weight``, that of the rows; counts, which are whole numbers, are added.

    Clients are summed in the order in which they come, that of their ids.
    """
    total: Arrays = {}
    weight = 0.0
    for k, arrays, share in answers:
        pi = float(weights[k])
        weight += pi * share
        for name, array in arrays.items():
            part = array if array.dtype.kind in "iu" else pi * array
            total[name] = total[name] + part if name in total else part
    if not total:
        raise ValueError("a fold holds no rows: use fewer folds")
    mean = {name: a if a.dtype.kind in "iu" else np.asarray(a / weight) for name, a in total.items()}
    return mean | {"weight": np.array(weight)}


def collected(answers: Sequence[Arrays]) -> Traffic:
    """What crossed where every client answered for itself."""
    up = sum(array.size for each in answers for array in each.values())
    return Traffic(len(answers), up, 0, tuple(sorted(set[str]().union(*answers))))
