"""The local loops of a desk, which serve one problem after the other."""

import numpy as np

import unpooled as up
from tests.runs import PROBLEM
from unpooled.engines.base import Task
from unpooled.engines.local.loops import Loops, loop_rows
from unpooled.penalties.l1 import L1Record


class OwnRecord(L1Record):
    """A user's."""


class OwnL1(up.L1):
    def record(self, *shape, **order):
        return OwnRecord(*super().record(*shape, **order))


def test_loops_are_compiled_for_the_problem_at_hand(small):
    """What is compiled for a user's records is kept apart on disk, also where loops were made for others."""
    first, second = (up.Problem(up.Squared(), kind(0.1)).bind(small) for kind in (up.L1, OwnL1))
    algorithm = up.FedDA(step=0.01)
    task = Task(algorithm, first, 0, 5, np.dtype(np.float64))
    loops = Loops(task, loop_rows(first, small), small.offsets)
    assert loops._foreign(first) == ()
    assert loops._foreign(second) == (OwnRecord,)
    assert loops._foreign(PROBLEM.bind(small)) == ()
