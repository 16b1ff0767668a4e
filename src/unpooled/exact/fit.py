"""The result of an exact fit: the model, the proof of how good it is, and what it cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unpooled._ledger import Ledger, in_words
from unpooled._wording import counted, part_of
from unpooled.exact.certificate import Certificate
from unpooled.kernels.arrays import Arrays, Float
from unpooled.problem import Problem


@dataclass(eq=False, repr=False)
class Fit:
    """What ``solve`` returns.

    ``w`` has the shape of the coefficients, ``intercept`` is None where the problem has none. ``history``
    holds round, objective and gap, one entry for each evaluated round. ``converged`` says whether the
    certificate reached ``tol``; ``notes`` what was chosen, and what was refused. ``statistics`` are the sums
    that sufficient statistics were made of, empty for other solvers: inference asks for nothing more.
    """

    problem: Problem
    w: Float
    intercept: Any
    certificate: Certificate
    converged: bool
    tol: float
    ledger: Ledger
    solver: str
    history: Arrays = field(repr=False)
    notes: list[str]
    statistics: Arrays = field(default_factory=dict, repr=False)

    @property
    def rounds(self) -> int:
        """Rounds of communication, all of them."""
        return self.ledger.rounds

    def summary(self) -> str:
        """The fit in a few lines of text."""
        kept, objective = int(np.count_nonzero(self.w)), self.certificate.objective
        ended = "reached" if self.converged else "NOT reached"
        lines = [
            f"{type(self.problem.loss).__name__} + {self.problem.penalty!r}, by {self.solver}",
            f"  {part_of(kept, self.w.size, 'coefficient')} not zero; objective {objective:.10g}",
            f"  {self.certificate}; tolerance {self.tol:g} {ended}",
            f"  {self.ledger}",
            f"  left the sites: {in_words(self.ledger.kinds)}",
        ]
        return "\n".join(lines + [f"  {note}" for note in self.notes])

    def __repr__(self) -> str:
        return f"Fit({self.solver}: {counted(self.rounds, 'round')}, {self.certificate})"
