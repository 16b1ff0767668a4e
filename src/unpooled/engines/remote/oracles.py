"""The clients of exact solvers whose rows are elsewhere. All must answer: without one the result differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from unpooled._validation import column
from unpooled.data.folds import Fold, Folds, Given
from unpooled.engines.remote.client_server import PARTS
from unpooled.engines.remote.messages import Reply
from unpooled.engines.remote.replies import by_position
from unpooled.engines.remote.specs import encode
from unpooled.engines.remote.summaries import ROUNDING
from unpooled.exact.clients import Answer, Question, Traffic, asked, collected
from unpooled.exact.expected import Rule, complaint
from unpooled.exact.site import Site
from unpooled.kernels.arrays import Array, Arrays

if TYPE_CHECKING:
    from unpooled.engines.remote.data import RemoteData


class RemoteOracles:
    """All clients of ``data``. ``SiteLostError`` names those that do not answer, after the retries."""

    def __init__(self, data: RemoteData):
        self.data = data
        self._dealt: dict[tuple[Folds, int], Counter[int]] = {}

    def ask(self, questions: Sequence[Question]) -> tuple[list[Arrays], Traffic]:
        """The sums of the answers to each question, as the local engine has them."""
        specs, arrays = [], dict[str, Array]()
        for q, question in enumerate(questions):
            if question.fold is not None and isinstance(question.fold.folds, Given):
                raise ValueError("folds of single rows are known to the sites alone: use a number of folds")
            parts = {}
            for name in PARTS:
                parts[name], more = encode(getattr(question, name), self.data.trusted, f"{q}/{name}")
                arrays |= more
            arrays |= {f"{q}/{name}": array for name, array in question.arrays.items()}
            specs.append({**parts, "arrays": list(question.arrays)})
        found: list[list[Answer]] = [[] for _ in questions]

        def check(reply: Reply, positions: Array) -> str | None:
            given = _by_question(reply.arrays, len(questions))
            if isinstance(given, str):
                return given
            for question, answers, answered in zip(questions, found, given, strict=True):
                said = self._taken(question, answered, positions, answers)
                if said:
                    return said
            return None

        self.data.ask_all("ask", {"questions": specs}, arrays, check)
        return asked(
            questions, [sorted(answers, key=lambda each: each.k) for answers in found], self.data.weights
        )

    def collect(self, answer: Callable[[Site], Arrays]) -> tuple[list[Arrays], Traffic]:
        """Every client's own answer, in the order of ids."""
        spec, arrays = encode(answer, self.data.trusted, "summary")
        answers: list[Arrays] = [{} for _ in range(self.data.n_clients)]

        def check(reply: Reply, positions: Array) -> str | None:
            given = by_position(reply.arrays, positions)
            if isinstance(given, str):
                return given
            for k in positions.tolist():
                if k not in given:
                    return "its answer is empty"
                said = self._broken(answer, k, given[k])
                if said:
                    return said
                answers[k] = given[k]
            return None

        self.data.ask_all("collect", {"summary": spec}, arrays, check)
        return answers, collected(answers)

    def _broken(self, summary: Any, k: int, answer: Arrays) -> str | None:
        """What is wrong with a client's summary; that of a user's own function has no rules."""
        if not hasattr(summary, "expected"):
            return None
        rules = summary.expected(self.data.n_features, int(self.data.sizes[k]), self._weight(k))
        said = complaint(answer, rules)
        wrong = next((a for name, a in answer.items() if said and said.startswith(f"its {name} ")), None)
        if wrong is None or wrong.shape != (self.data.n_features,) or np.isfinite(wrong).all():
            return said
        at = np.unravel_index(int(np.argmin(np.isfinite(wrong))), self.data.row_shape)
        return f"{said} ({column([int(i) for i in at], self.data.feature_names)})"

    def _taken(
        self, question: Question, arrays: Arrays, positions: Array, answers: list[Answer]
    ) -> str | None:
        """Take a holder's answers to a question in, or say what is wrong with them."""
        given = by_position(arrays, positions)
        if isinstance(given, str):
            return given
        for k in positions.tolist():
            rows, whole = self._rows(k, question.fold), int(self.data.sizes[k])
            if (k in given) != (rows > 0):
                return f"its answer is empty, and it has {rows} rows" if rows else "it answered without rows"
            if k not in given:
                continue
            least, most = self._weight(k) * np.array([rows == whole, 1.0])
            if not self.data.is_weighted:
                least = most = rows / whole
            share = Rule((), least * (1.0 - ROUNDING), most * (1.0 + ROUNDING))
            rules = question.solver.expected(question.problem, question.arrays, rows)
            said = complaint(given[k], rules | {"share": share})
            if said:
                return said
            answers.append(Answer(k, given[k], float(given[k].pop("share"))))
        return None

    def _weight(self, k: int) -> float:
        """The mean weight of a client's rows: 1 where none have weights."""
        return float(self.data.totals[k] / self.data.sizes[k])

    def _rows(self, k: int, fold: Fold | None) -> int:
        """How many of a client's rows a question is about; the rules that deal folds are known here too."""
        size = int(self.data.sizes[k])
        if fold is None:
            return size
        if (fold.folds, k) not in self._dealt:
            self._dealt[fold.folds, k] = Counter(fold.folds.of(k, self.data.ids[k], size).tolist())
        inside = self._dealt[fold.folds, k][fold.number]
        return inside if fold.held_out else size - inside


def _by_question(arrays: Arrays, count: int) -> list[Arrays] | str:
    """Arrays under ``question/position/name`` by question; or what is wrong."""
    found: list[Arrays] = [{} for _ in range(count)]
    for name, array in arrays.items():
        q, slash, rest = name.partition("/")
        if not slash or not q.isdecimal() or str(int(q)) != q or int(q) >= count:
            return f"it answered {name!r:.100}, which it was not asked"
        found[int(q)][rest] = array
    return found
