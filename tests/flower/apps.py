"""The apps of the tests: what every process of a deployment, and every actor of a simulation, imports."""

import pickle
import time
from pathlib import Path

import numpy as np
from flwr.serverapp import ServerApp

import unpooled as up
from tests.own_members import NegativeBinomial, SparseGroupLasso
from unpooled.engines.flower.client import answering
from unpooled.engines.remote.client_server import ClientServer
from unpooled.engines.remote.data import RemoteData
from unpooled.engines.remote.engine import Remote
from unpooled.engines.remote.messages import Reply, Request
from unpooled.runs.flower import CompositeStrategy, GridTransport, allow, client_app

allow(NegativeBinomial, SparseGroupLasso)

SITES = ("north", "south", "west")
DATA = up.datasets.sparse_regression(seed=5, n_clients=3, n_rows=40, n_features=30, sparsity=6)
DATA = up.FederatedData.from_clients(
    {name: (c.X, np.maximum(c.y, 0.0)) for name, c in zip(SITES, DATA, strict=True)}
)
PROBLEM = up.Problem(up.Squared(), up.L1(0.05), intercept=True)
OWN = up.Problem(NegativeBinomial(2.0), SparseGroupLasso(0.05, 10 * (0, 1, 2)), intercept=True)
FAST = up.FastFedDA(mu=0.1, gamma=50.0, local_steps=4)
SCAFFOLD = up.Scaffold(step=0.01, local_steps=3)
STAGES = up.MCFedDA(mu=0.1, gamma=20.0, local_steps=4, stages=[(1, 0.2, 9.0), (1, 0.05, 99.0)])
OPTIONS = {"rounds": 2, "cohort": 2, "batch_size": 8, "seed": 7, "every": 2}
POISONED, LOUD = 666, 667  # the seeds with which the south sends NaN, and huge numbers


def load(context):
    [client] = [each for each in DATA if each.id == name_of(context)]
    return client.X, client.y


def name_of(context):
    config = context.node_config
    return str(config["client-id"]) if "client-id" in config else SITES[config["partition-id"]]


class Moody(ClientServer):
    """A desk whose uploads are NaN in runs of one seed, and huge in those of another."""

    def handle(self, request):
        reply = super().handle(request)
        seed = request.spec["run"]["seed"] if request.kind == "train" else None
        if seed in (POISONED, LOUD):
            reply.arrays["up"][:] = np.nan if seed == POISONED else 1e9
        return reply


def open_desk(context):
    data = up.FederatedData.from_clients({name_of(context): load(context)})
    return Moody(data) if name_of(context) == "south" else ClientServer(data)


def by_strategy(grid, algorithm, num_rounds=2, /, **options):
    """The model that Flower's own loop comes to."""
    strategy = CompositeStrategy(algorithm, PROBLEM, **options)
    result = strategy.start(grid, strategy.initial_arrays(grid), num_rounds=num_rounds)
    return *strategy.estimate(result.arrays), result, strategy


def jobs(grid):
    """An exact solve and an algorithm's rounds, over one transport."""
    transport = GridTransport(grid, timeout=120.0)
    seen = {"sites": transport.wait_for(len(SITES), 120.0)}
    data = RemoteData.of(transport)
    seen["solve"] = up.solve(PROBLEM, data)
    run = up.simulate(FAST, PROBLEM, data, engine=Remote(), progress=False, **OPTIONS)
    seen["fast"] = run.w, run.intercept
    seen["own"] = up.solve(OWN, data)
    run = up.simulate(SCAFFOLD, OWN, data, progress=False, rounds=2, batch_size=8)
    seen["own run"] = run.w, run.intercept
    return seen


client = client_app(load, name=name_of)
moody = answering(open_desk, name_of)


class Waiting:
    """Says that it was asked, and answers once it is let."""

    def __init__(self, context):
        self.folder, self.name = Path(context.node_config["folder"]), name_of(context)

    def state(self):
        return {}, {}

    def restore(self, spec, arrays):
        pass

    def handle(self, request):
        (self.folder / f"{self.name}.asked").touch()
        deadline = time.monotonic() + 120.0
        while not (self.folder / "go").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        return Reply({"name": self.name}, {})


waiting = answering(Waiting, name_of)
asking = ServerApp()


@asking.main()
def ask(grid, context):
    transport = GridTransport(grid, timeout=200.0)
    names = transport.wait_for(len(SITES), 120.0)
    answers = transport.exchange({name: Request("ask", {}, {}) for name in names})
    Path(context.run_config["out"]).write_bytes(pickle.dumps(answers))


failing = ServerApp()


@failing.main()
def fail(grid, context):
    raise ValueError("the coordinator's disk is full")


def same(got, expected):
    """Whether models are the same, bit for bit."""
    return all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in zip(got, expected, strict=True))
