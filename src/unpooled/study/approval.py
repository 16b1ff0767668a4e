"""The owner of a site's rows says yes or no before an answer leaves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unpooled._ledger import megabytes
from unpooled.engines.remote.messages import Reply, Request
from unpooled.study.rehearsal import NAMES, words_of

SHOWN = 1000  # numbers of an array that are printed


class Approval:
    """Asks before each kind of answer leaves, or before ``each`` answer.

    ``ask`` puts a question and returns what was typed; ``show`` prints.
    """

    def __init__(self, ask: Callable[[str], str], show: Callable[[str], None], *, each: bool = False):
        self.ask, self.show, self.each = ask, show, each
        self._approved: set[tuple[str, str]] = set()

    def __call__(self, request: Request, reply: Reply) -> bool:
        """Whether this answer may leave."""
        what, size = words_of(request, reply)
        if not self.each and (request.kind, what) in self._approved:
            return True
        name = NAMES.get(request.kind, request.kind)
        all_of = "This answer" if self.each else "Answers of this kind, now and later"
        question = f"{name}: {what} ({megabytes(size)}). {all_of}: send? yes, no, or values to see them"
        while True:
            typed = self.ask(question).strip().lower()
            if typed in ("y", "yes"):
                self._approved.add((request.kind, what))
                return True
            if typed in ("n", "no"):
                return False
            if typed in ("v", "values"):
                self._print(reply)

    def _print(self, reply: Reply) -> None:
        for key, value in reply.spec.items():
            self.show(f"{key}: {value}")
        for name, array in reply.arrays.items():
            shown = np.array2string(np.asarray(array), threshold=SHOWN, precision=8)
            self.show(f"{name} {np.shape(array)}:\n{shown}")
