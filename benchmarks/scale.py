"""How a round scales on sparse features: seconds against p and against the non-zeros, and memory.

    python benchmarks/scale.py                 # exponents, then 10 000 clients with p = 10⁶
    python benchmarks/scale.py --nonzeros 1000 # the same with 0.1 % non-zeros: about 5 GB and two minutes

Logistic regression with an ℓ1 penalty by Fast-FedDA, ten local steps on minibatches of ten rows. "clients" is
the time inside the compiled loop over the cohort, "round" all of a round: also the server's few passes over
vectors of length p. The objective is not evaluated between the rounds that are timed.
"""

from __future__ import annotations

import argparse
import math
import resource
import time
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

import unpooled as up
from unpooled.engines.local import Local
from unpooled.engines.loops import Loops
from unpooled.engines.task import Task
from unpooled.federation import Federation, Position
from unpooled.ledger import Ledger
from unpooled.rows import rows_of

PROBLEM = up.Problem(up.Logistic(), up.L1(1e-4), intercept=True)
COHORT, BATCH, STEPS = 100, 10, 10


def rows(n_clients: int, n_rows: int, p: int, nonzeros: int, seed: int = 0) -> up.FederatedData:
    """Rows with one entry in each of ``nonzeros`` stretches of the features, so that none occurs twice."""
    rng, n, stretch = np.random.default_rng(seed), n_clients * n_rows, p // nonzeros
    columns, values = np.empty((n, nonzeros), np.int32), np.empty((n, nonzeros), np.float32)
    truth = np.where(rng.random(p) < 0.02, 1.0, 0.0)
    y = np.empty(n)
    step = max(1, 2_000_000 // nonzeros)
    for block in (slice(start, start + step) for start in range(0, n, step)):
        m = len(y[block])
        columns[block] = np.arange(nonzeros) * stretch + rng.integers(0, stretch, (m, nonzeros))
        values[block] = rng.standard_normal((m, nonzeros), dtype=np.float32)
        y[block] = np.einsum("ij,ij->i", values[block], truth[columns[block]]) > 0
    starts = np.arange(0, n * nonzeros + 1, nonzeros, dtype=np.int32)
    X = sparse.csr_array((values.ravel(), columns.ravel(), starts), shape=(n, p))
    return up.FederatedData.from_arrays(X, y, np.repeat(np.arange(n_clients), n_rows))


class Timed(Loops):
    """Local loops that add up the time spent in compiled code."""

    seconds = 0.0

    def _call(self, function: Any, arguments: tuple[Any, ...]) -> None:
        began = time.perf_counter()
        super()._call(function, arguments)
        self.seconds += time.perf_counter() - began


def seconds(data: up.FederatedData, nonzeros: int, rounds: int = 20) -> tuple[float, float, Ledger]:
    """The median round's seconds in the clients' loop and in all, and the ledger; two rounds warm up."""
    algorithm = up.FastFedDA(mu=1e-3, gamma=0.25 * nonzeros, local_steps=STEPS, a=math.inf)
    problem, dtype = PROBLEM.bind(data), np.dtype(np.float64)
    task = Task(algorithm, problem, 0, BATCH, dtype)
    clients = Local().open(task, data)
    clients.loops = loops = Timed(task, rows_of(data), data.offsets)
    start = Position(algorithm.init(problem, np.zeros(problem.layout.size)), Ledger())
    federation = Federation(task, data, clients, COHORT, "renormalised", start)
    spent = []
    for _ in range(rounds + 2):
        loops.seconds, began = 0.0, time.perf_counter()
        federation.step()
        spent.append((loops.seconds, time.perf_counter() - began))
    inside, whole = np.median(spent[2:], axis=0)
    return float(inside), float(whole), federation.position.ledger


def table(title: str, name: str, cases: list[tuple[int, float, float]]) -> None:
    """Seconds and, from one line to the next and over all, the exponents."""
    print(f"\n{title}\n{name:>12} {'clients ms':>12} {'round ms':>12}")
    for size, inside, whole in cases:
        print(f"{size:12d} {1e3 * inside:12.2f} {1e3 * whole:12.2f}")
    for part, column in (("clients", 1), ("round", 2)):
        logs = [(math.log(case[0]), math.log(case[column])) for case in cases]
        local = ", ".join(f"{(v - u) / (b - a):.2f}" for (a, u), (b, v) in pairwise(logs))
        slope = np.polyfit(*np.transpose(logs), 1)[0]
        print(f"  exponent of {part}: {slope:.2f}  (from line to line: {local})")


def main() -> None:
    """Print the tables."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--nonzeros", type=int, default=50, help="a row, in the large run")
    options.add_argument("--clients", type=int, default=10_000, help="in the large run")
    options.add_argument("--features", type=int, default=1_000_000, help="in the large run")
    given = options.parse_args()

    cases = [(p, *seconds(rows(300, 50, p, 50), 50)[:2]) for p in (10**4, 10**5, 10**6, 4 * 10**6)]
    table("Against p, 50 non-zeros a row, cohort 100", "p", cases)
    cases = [(s, *seconds(rows(300, 50, 10**6, s), s)[:2]) for s in (25, 100, 400, 1600)]
    table("Against the non-zeros of a row, p = 10⁶, cohort 100", "non-zeros", cases)

    began = time.perf_counter()
    data = rows(given.clients, 50, given.features, given.nonzeros)
    print(f"\n{data}: {data.X.nnz:.3g} non-zeros, made in {time.perf_counter() - began:.0f} s")
    inside, whole, ledger = seconds(data, given.nonzeros)
    size = data.X.data.nbytes + data.X.indices.nbytes + data.X.indptr.nbytes
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"  {1e3 * inside:.0f} ms a round in the clients' loop, {1e3 * whole:.0f} ms in all; {ledger}")
    began = time.perf_counter()
    PROBLEM.objective(np.zeros(given.features), data, 0.0)
    print(f"  objective in {time.perf_counter() - began:.2f} s")
    print(f"  peak memory {peak / 1e9:.2f} GB, of which the data {size / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
