import numpy as np
import pytest

import unpooled as up
from benchmarks.shapes import Shape
from benchmarks.work import Work

ROUNDS = 4
UNIFORM = {"a": np.inf, "schedule": "uniform", "local_steps": 3}
SHAPES = {
    "lasso": Shape(
        name="lasso",
        make=lambda: up.datasets.sparse_regression(1, 6, 12, 20, 5),
        problem=up.Problem(up.Squared(), up.L1(0.1)),
        algorithm=up.FastFedDA(mu=0.1, gamma=60, **UNIFORM),
        cohort=4,
        batch_size=5,
        rounds=ROUNDS,
        gaussian_start=True,
    ),
    "low rank": Shape(
        name="low rank",
        make=lambda: up.datasets.low_rank_regression(1, 6, 12, (5, 4), 2),
        problem=up.Problem(up.Squared(), up.Nuclear(0.5)),
        algorithm=up.FastFedDA(mu=0.1, gamma=60, **UNIFORM),
        cohort=4,
        batch_size=5,
        rounds=ROUNDS,
        gaussian_start=True,
    ),
    "softmax": Shape(
        name="softmax",
        make=lambda: up.datasets.sparse_classification(1, 6, 12, 20, 3, 6),
        problem=up.Problem(up.Softmax(3), up.L1(0.01)),
        algorithm=up.FastFedDA(mu=0.01, gamma=20, **UNIFORM),
        cohort=4,
        batch_size=5,
        rounds=ROUNDS,
    ),
}


@pytest.fixture(params=SHAPES)
def work(request):
    """A tiny problem in float64, with its draws."""
    shape = SHAPES[request.param]
    return Work(shape, shape.make(), ROUNDS)
