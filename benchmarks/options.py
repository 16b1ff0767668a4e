"""What the whole bench is asked for, and what its sections share."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchmarks.shapes import Shape, paper_shapes


@dataclass(frozen=True)
class Options:
    """``quick`` repeats less and has smaller runs, ``data`` is MNIST by writer."""

    quick: bool = False
    data: Path | None = None

    @property
    def repeats(self) -> int:
        """How often contenders take turns."""
        return 3 if self.quick else 7

    @property
    def turns(self) -> int:
        """The same where turns are short and targets hang on them: a neighbour's work on a shared machine
        lasts longer than one.
        """
        return 2 * self.repeats + 1

    @property
    def many_turns(self) -> int:
        """The same where nobody else waits for a turn."""
        return 3 * self.turns

    @property
    def cores(self) -> int:
        """The threads of "all threads"."""
        return os.cpu_count() or 1

    @property
    def thread_counts(self) -> tuple[int, ...]:
        """One, and all."""
        return (1, self.cores) if self.cores > 1 else (1,)

    @cached_property
    def shapes(self) -> list[Shape]:
        """The paper's four; their data are made once for all sections."""
        return paper_shapes(self.data)

    def shape(self, name: str) -> Shape:
        """One of the four."""
        return next(shape for shape in self.shapes if shape.name == name)
