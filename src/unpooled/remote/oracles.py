"""The clients of exact solvers whose rows are elsewhere. An answer without a site would be another answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from unpooled.algorithms.exact.site import Site
from unpooled.arrays import Array, Arrays
from unpooled.engines.folds import Given
from unpooled.engines.oracles import Answer, Question, Traffic, asked, collected
from unpooled.remote.data import RemoteData
from unpooled.remote.desk import PARTS
from unpooled.remote.failures import SiteLostError
from unpooled.remote.messages import Holder, Reply
from unpooled.remote.specs import encode


class RemoteOracles:
    """All clients of ``data``. Who does not answer is asked again, and then named in a ``SiteLostError``."""

    def __init__(self, data: RemoteData):
        self.data = data

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
        replies = self.data.ask_all("ask", {"questions": specs}, arrays)
        found = self._sorted(replies, len(questions))
        return asked(questions, found, self.data.weights)

    def collect(self, answer: Callable[[Site], Arrays]) -> tuple[list[Arrays], Traffic]:
        """Every client's own answer, in the order of ids."""
        spec, arrays = encode(answer, self.data.trusted, "summary")
        replies = self.data.ask_all("collect", {"summary": spec}, arrays)
        named = {name: array for reply in replies.values() for name, array in reply.arrays.items()}
        answers: list[Arrays] = [{} for _ in range(self.data.n_clients)]
        for name, array in named.items():
            k, _, kind = name.partition("/")
            answers[int(k)][kind] = np.asarray(array)
        return answers, collected(answers)

    def _sorted(self, replies: Mapping[Holder, Reply], n_questions: int) -> list[list[Answer]]:
        """The answers to each question in the order of positions, once they are known to be sound."""
        found: list[dict[int, Arrays]] = [{} for _ in range(n_questions)]
        wrong: dict[Holder, str] = {}
        for holder, reply in replies.items():
            own = set(self.data.holders[holder].tolist())
            for name, array in reply.arrays.items():
                complaint = _complaint(name, array, own, n_questions)
                if complaint:
                    wrong[holder] = complaint
                    break
                q, k, kind = name.split("/", 2)
                found[int(q)].setdefault(int(k), {})[kind] = np.asarray(array)
        if not wrong:
            wrong = self._odd_ones(found)
        if wrong:
            raise SiteLostError(wrong)
        return [[_answer(k, by_client[k]) for k in sorted(by_client)] for by_client in found]

    def _odd_ones(self, found: list[dict[int, Arrays]]) -> dict[Holder, str]:
        """Those whose answers have another shape or dtype than most."""
        wrong: dict[Holder, str] = {}
        for by_client in found:
            for kind in sorted(set[str]().union(*by_client.values())):
                looks: dict[int, Any] = {
                    k: (a[kind].shape, a[kind].dtype.str) for k, a in by_client.items() if kind in a
                }
                [(usual, _)] = Counter(looks.values()).most_common(1)
                for k, look in looks.items():
                    if look != usual:
                        holder = next(h for h, own in self.data.holders.items() if k in own)
                        wrong[holder] = f"its {kind} has shape {look[0]} and dtype {look[1]}, others {usual}"
        return wrong


def _complaint(name: str, array: Array, own: set[int], n_questions: int) -> str | None:
    q, k, kind = [*name.split("/", 2), "", ""][:3]
    if not (q.isdigit() and int(q) < n_questions and k.isdigit() and int(k) in own and kind):
        return f"it answered {name!r}, which it was not asked"
    if array.dtype.kind not in "iuf":
        return f"its {kind} has dtype {array.dtype}"
    if array.dtype.kind == "f" and np.isnan(array).any():
        return f"its {kind} holds NaN"
    return None


def _answer(k: int, arrays: Arrays) -> Answer:
    arrays = dict(arrays)
    return Answer(k, arrays, float(arrays.pop("share")))
