"""Every class that crosses comes back as it was."""

import json
import math

import numpy as np
import pytest

import unpooled as up
from tests.runs import ALGORITHMS
from unpooled import exact
from unpooled.data.folds import BySite, Dealt, Fold, Halved
from unpooled.engines.remote.specs import KNOWN, SpecError, decode, encode, key_of

PENALTIES = [
    up.L1(0.1),
    up.L1(0.1, weights=np.arange(40) / 3.0),
    up.L1(0.1, weights=[[1.0, 0.0], [2.0, 3.0]]),
    up.ElasticNet(0.1, 0.3, weights=[1.0, 0.0, 2.0]),
    up.GroupL2(0.2, np.arange(60) // 3, weights="sqrt"),
    up.GroupL2(0.2, [[0, 2], [1, 3]], weights=[1.0, 2.5]),
    up.GroupL2(0.2, ["a", "b", "a"]),
    up.Nuclear(0.3),
    up.Zero(),
]
LOSSES = [up.Squared(), up.Logistic(), up.Softmax(), up.Softmax(n_classes=4), up.Poisson(), up.Huber(2.0)]
SOLVERS = [
    exact.AndersonProxGradient(5, memory=3),
    exact.Fista(0),
    exact.ProxNewton(),
    exact.SufficientStatistics(7),
]
PROBLEMS = [
    up.Problem(up.Squared(), up.L1(0.1), intercept=True, ball=3.0),
    up.Problem(up.Logistic(), up.L1(0.1), intercept="sites"),
    up.Problem(up.Softmax(), up.L1(0.1)).laid_out((7,), 3),
]
STAGES = up.MCFedDA(mu=0.1, gamma=2.0, stages=[(4, 0.2, 9.0), (16, 0.1, math.inf)])
FOLDS = [Fold(Dealt(5, 3, 10), 2, True), Fold(BySite(), 0, False), Fold(Halved(1, 2), 1, True)]
THINGS = [*PENALTIES, *LOSSES, *SOLVERS, *PROBLEMS, *ALGORITHMS, STAGES, *FOLDS]


@pytest.mark.parametrize("thing", THINGS, ids=str)
def test_there_and_back(thing):
    spec, arrays = encode(thing)
    crossed = json.loads(json.dumps(spec))
    back = decode(crossed, arrays)
    assert type(back) is type(thing)
    assert back == thing
    assert key_of(crossed, arrays) == key_of(spec, arrays)


def test_every_known_class_is_among_them():
    met = set()

    def meet(spec):
        if isinstance(spec, dict):
            met.add(spec.get("is"))
            for part in spec.values():
                meet(part)
        elif isinstance(spec, list):
            for part in spec:
                meet(part)

    for thing in THINGS:
        meet(encode(thing)[0])
    assert set(KNOWN) - met == {"ColumnSummary", "OwnIntercept"}  # tests of preprocessing have these


def test_long_weights_go_as_an_array():
    spec, arrays = encode(up.L1(0.1, weights=np.ones(1000)), name="penalty")
    assert arrays["penalty.weights"].shape == (1000,)
    assert len(json.dumps(spec)) < 200


def test_what_is_refused():
    class Mine(up.L1):
        pass

    with pytest.raises(SpecError, match=r"Mine is not one of the library's own classes"):
        encode(Mine(0.1))
    with pytest.raises(SpecError, match=r"'Popen' is not one of the library's classes"):
        decode({"is": "Popen", "args": "ls"}, {})
    with pytest.raises(SpecError, match=r"taken from trusted processes only"):
        decode({"pickle": {"array": "x"}}, {"x": np.zeros(3, np.uint8)})
    with pytest.raises(ValueError, match=r"lam"):
        decode({"is": "L1", "lam": -1.0, "weights": None}, {})
    with pytest.raises(SpecError, match=r"describes none of the library's objects"):
        decode({"is": "L1", "lam": 1.0}, {})
