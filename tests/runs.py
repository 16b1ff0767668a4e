"""Small runs that several test modules make, and what it means that two are the same."""

import numpy as np

import unpooled as up

PROBLEM = up.Problem(up.Squared(), up.L1(0.1))
FAST = up.FastFedDA(mu=0.1, gamma=80.0, local_steps=4, schedule="uniform")
ALGORITHMS = [
    FAST,
    up.CFedDA(mu=0.1, gamma=20.0, local_steps=4, schedule="uniform"),
    up.MCFedDA(mu=0.1, gamma=20.0, local_steps=4, lambda0=0.4),
    up.FedDA(step=0.01, local_steps=4),
    up.FedMiD(step=0.01, local_steps=4),
    up.FedAvg(step=0.01, local_steps=4),
    up.Scaffold(step=0.01, local_steps=4),
]
NAMES = [type(algorithm).__name__ for algorithm in ALGORITHMS]


def go(algorithm, data, **options):
    options = {"problem": PROBLEM, "rounds": 12, "cohort": 5, "batch_size": 7, "seed": 1, **options}
    return up.simulate(algorithm, data=data, **options)


def same_bits(a, b):
    assert np.array_equal(a.w, b.w)
    assert a.history.keys() == b.history.keys()
    for name in a.history:
        assert np.array_equal(a.history[name], b.history[name]), name
    assert np.array_equal(a.memory, b.memory)
