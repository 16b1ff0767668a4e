"""Small problems that together reach every kernel, for ``test_uncompiled``; each returns a list of arrays.

``python -m tests.kernel_cases FILE`` writes what they return to the file, and prints the names of the kernels
whose source did not run.
"""

import importlib
import math
import pkgutil
import sys
from types import FunctionType
from unittest.mock import patch

import numpy as np

import unpooled as up
from tests.engines.test_touched import go, pair
from tests.engines.test_vacant import images
from tests.exact.federations import LOSSES, federated
from tests.penalties.test_singular import with_singular_values
from tests.penalties.truth import CASES as PENALTIES
from tests.runs import ALGORITHMS, FAST
from unpooled.engines.local.columns import layouts
from unpooled.kernels import weighted_sum
from unpooled.kernels.compile import Kernel, Vectorised
from unpooled.kernels.linalg.singular_values import shrink
from unpooled.losses.base import linear_margins
from unpooled.penalties.nuclear import LargeNuclearRecord

BRIEF = {"rounds": 3, "cohort": 5, "progress": False}


def result(run):
    assert run.status == "completed", run.message
    return [run.w, *run.history.values(), run.memory]


def algorithms():
    """Every local loop, on rows without vacant columns."""
    data = up.datasets.sparse_regression(seed=2, n_clients=6, n_rows=9, n_features=8, sparsity=2)
    problem = up.Problem(up.Squared(), up.L1(0.1))
    options = {**BRIEF, "batch_size": 7, "seed": 1}
    return [part for each in ALGORITHMS for part in result(up.simulate(each, problem, data, **options))]


def forms_of_rows():
    """CSR and dense rows, with steps that are measured; without vacant columns; as non-zeros."""
    several = {"target": lambda y: np.digitize(y, [-0.5, 0.5, 1.0]).astype(float)}
    softmax = up.Problem(up.Softmax(), up.L1(0.01), intercept=True)
    slow = up.FastFedDA(mu=0.01, gamma=10.0, local_steps=3)
    dense, csr = pair()
    runs = [go(FAST, csr, **BRIEF), go(FAST, csr, **BRIEF, aggregate=up.CoordinateMedian())]
    runs += [go(up.FastFedDA(local_steps=2), data, **BRIEF) for data in (csr, dense)]
    runs.append(go(slow, images(**several), softmax, **BRIEF, batch_size=6))
    with patch.object(layouts, "SEVERAL", 2):
        runs.append(go(slow, images(**several, empty=0.8), softmax, **BRIEF))
    return [part for run in runs for part in result(run)]


def domains():
    """Dual averaging without a penalty, with one of groups, and in a ball."""
    data = up.datasets.sparse_regression(seed=2, n_clients=6, n_rows=9, n_features=8, sparsity=2)
    groups = up.GroupL2(0.1, groups=np.arange(8) // 2)
    problems = [up.Problem(up.Squared(), up.Zero()), up.Problem(up.Squared(), groups)]
    problems.append(up.Problem(up.Squared(), up.L1(0.1), ball=0.3))
    runs = [up.simulate(FAST, problem, data, **BRIEF, batch_size=7) for problem in problems]
    return [part for run in runs for part in result(run)]


def losses():
    """Values and gradients."""
    rng = np.random.default_rng(0)
    found = []
    for kind, loss in LOSSES.items():
        data = federated(kind, n=12, p=4, sites=2)
        w = rng.standard_normal((4, 3) if kind == "softmax" else 4)
        found += [loss.value(w, data.X, data.y), loss.gradient(w, data.X, data.y)]
        found.append(up.LinearLoss.values(loss, linear_margins(data.X, w), data.y))  # by its kernel
    return found


def penalties():
    """Each prox: free, at a center, within a radius, in a ball, and in both."""
    rng, found = np.random.default_rng(0), []
    for penalty, shape in PENALTIES.values():
        v, center = rng.standard_normal((2, *shape))
        free = penalty.prox(v, 0.3)
        radius = 0.5 * penalty.norm(free - center)
        at_center = penalty.constrained_prox(v, 0.3, center if radius else v, 0.0)
        near = penalty.constrained_prox(v, 0.3, center, radius)
        ball = 0.9 * np.linalg.norm(near)
        inside = [penalty.constrained_prox(v, 0.3, center, most, ball) for most in (math.inf, radius)]
        found += [free, at_center, near, *inside]
    return found


def subgradients():
    """One of the nuclear norm is a difference, of half the digits."""
    rng, found = np.random.default_rng(0), []
    records = [(penalty.record(shape), math.prod(shape)) for penalty, shape in PENALTIES.values()]
    for record, size in (*records, (LargeNuclearRecord(0.5, 3, 4), 12)):
        for v in (np.zeros(size), rng.standard_normal(size)):
            found.append(np.empty(size))
            record.subgradient(v, found[-1])
    return found


def matrices():
    """From leading singular vectors; by Jacobi's rotations, for singular values far apart; by LAPACK."""
    rng = np.random.default_rng(0)
    W = rng.standard_normal((130, 2)) @ rng.standard_normal((2, 131)) + 0.2 * rng.standard_normal((130, 131))
    graded = with_singular_values(rng, 6, 6, np.logspace(0, -12, 6))
    low, tail = np.empty(W.size), np.empty(36)
    LargeNuclearRecord(1.0, *W.shape).prox(W.ravel(), 10.0, low)
    shrink(graded.ravel(), 6, 6, 1e-13, math.inf, 0.0, -1, True, tail)
    found, few = [low, tail, up.Nuclear(1e-13).prox(graded, 1.0)], LargeNuclearRecord(0.5, 3, 4)
    for v in (np.zeros(12), rng.standard_normal(12)):
        found.append(np.empty((2, 12)))
        few.prox(v, 0.1, found[-1][0])
        few.constrained_prox(v, 0.3, np.ones(12), 1.0, math.inf, found[-1][1])
    return found


def inference():
    """Coordinate descent."""
    data = federated("squared", n=60, p=6, sites=3)
    problem = up.Problem(up.Squared(), up.L1(0.1), True)
    own = up.inference.debiased_lasso(problem, data)
    stable = up.inference.stability_selection(problem, data, n_subsamples=4, lambdas=[0.5, 0.2], seed=3)
    return [own.estimate, own.standard_error, stable.frequencies]


def aggregates():
    """Clipped and noisy, robust, and a sum by several threads."""
    data = federated("squared", n=60, p=6, sites=6)
    problem, found = up.Problem(up.Squared(), up.L1(0.1)), []
    private = up.CentralDP(clip=0.1, noise_multiplier=2.0, delta=1e-4, noise_seed=3)
    robust = [{"aggregate": up.TrimmedMean(0.2)}, {"aggregate": up.CoordinateMedian()}]
    for options in (*robust, {"privacy": private}):
        found += result(up.simulate(FAST, problem, data, **BRIEF, **options))
    with patch.object(weighted_sum, "LARGE", 0):
        found += result(up.simulate(FAST, problem, data, **BRIEF))
    return found


CASES = [algorithms, forms_of_rows, domains, losses, penalties, subgradients, matrices, inference, aggregates]
TOLERANCE = {subgradients: 1e-7}  # of the largest entry of an array; 1e-10 otherwise


def kernels():
    """The names of all kernels of the package by the code of their source.

    They are what ``@kernel`` and ``@outlined`` mark, in modules and in records, and loops over threads. Those
    in explicit vectors have no source that could run: their twins in plain loops run for them.
    """
    modules = [importlib.import_module(part.name) for part in pkgutil.walk_packages(up.__path__, "unpooled.")]
    found, in_vectors = {}, set()
    for thing in (thing for module in modules for thing in vars(module).values()):
        if isinstance(thing, Vectorised):
            in_vectors.add(f"unpooled.kernels.{thing.module}")
        for each in vars(thing).values() if isinstance(thing, type) else [thing]:
            function = each.py_func if isinstance(each, Kernel) else each
            is_parallel = isinstance(function, FunctionType) and "prange" in function.__code__.co_names
            if isinstance(each, Kernel) or is_parallel:
                found[function.__code__] = function
    return {
        code: f"{function.__module__}.{function.__qualname__}"
        for code, function in found.items()
        if function.__module__ not in in_vectors
    }


def main(path):
    ran = set()
    sys.setprofile(lambda frame, event, _: ran.add(frame.f_code))
    returned = {f"{case.__name__} {i}": part for case in CASES for i, part in enumerate(case())}
    sys.setprofile(None)
    np.savez(path, **returned)
    print(*sorted(name for code, name in kernels().items() if code not in ran))


if __name__ == "__main__":
    main(sys.argv[1])
