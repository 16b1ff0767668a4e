"""The precisions a run can have: that of the data, and that of the dual vectors."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.contenders.engine import Engine
from benchmarks.shapes import Shape
from benchmarks.work import Work


@dataclass(frozen=True)
class Precision:
    """Contenders know only the data's; ``simulate`` keeps float64 states unless it is told otherwise."""

    name: str
    data: str
    states: str

    def work(self, shape: Shape, n_rounds: int | None = None) -> Work:
        """The shape's work on data of this precision."""
        return Work(shape, shape.data.astype(self.data), n_rounds or shape.rounds)

    def engine(self, work: Work, threads: int | None = None) -> Engine:
        """Our engine with states of this precision."""
        return Engine(work, threads, self.states)


DEFAULT = Precision("float32 data, float64 duals", "float32", "float64")
SINGLE = Precision("float32", "float32", "float32")
DOUBLE = Precision("float64", "float64", "float64")
PRECISIONS = (DEFAULT, SINGLE, DOUBLE)
TOLERANCE = {"float32": 1e-4, "float64": 1e-10}  # how far contenders' results may lie apart
