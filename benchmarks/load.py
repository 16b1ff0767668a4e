"""Many clients beyond one process: seconds a round, and memory.

    python benchmarks/load.py simulation          # 1 000 clients in Flower's simulation, 100 of them a round
    python benchmarks/load.py ray                 # 1 000 clients on Ray, all of them in every round
    python benchmarks/load.py supernodes          # 20 real supernodes on loopback

A lasso by Fast-FedDA, ten local steps on minibatches of ten rows; each client has 50 rows of 100 features.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import unpooled as up
from unpooled.engines.flower.client import client_app, client_id
from unpooled.engines.flower.environment import be_quiet, serverapp
from unpooled.engines.flower.transport import GridTransport
from unpooled.engines.flower.watchdog import descendants
from unpooled.engines.remote.data import RemoteData
from unpooled.engines.remote.engine import Remote
from unpooled.engines.remote.messages import Failure, Holder, Reply, Request, Through, Transport

PROBLEM = up.Problem(up.Squared(), up.L1(0.05), intercept=True)
ALGORITHM = up.FastFedDA(mu=0.1, gamma=100.0, local_steps=10)
N_ROWS, N_FEATURES = 50, 100


def rows(number: int) -> tuple[Any, Any]:
    """The rows of a client."""
    rng = np.random.default_rng([7, number])
    X = rng.standard_normal((N_ROWS, N_FEATURES))
    return X, X[:, :5].sum(axis=1) + rng.standard_normal(N_ROWS)


def load(context: Any) -> tuple[Any, Any]:
    """The rows of a node's client, whose id is its number."""
    return rows(int(client_id(context)))


class Timed(Through):
    """A transport that says how long each kind of request took."""

    def __init__(self, transport: Transport):
        super().__init__(transport)
        self.seconds: dict[str, list[float]] = collections.defaultdict(list)

    def holders(self) -> tuple[Holder, ...]:
        """Everyone who can be asked now, sorted."""
        began = time.perf_counter()
        here = self.transport.holders()
        self.seconds["holders"].append(time.perf_counter() - began)
        return here

    def exchange(self, requests: Mapping[Holder, Request]) -> dict[Holder, Reply | Failure]:
        """Ask each holder."""
        began = time.perf_counter()
        answers = self.transport.exchange(requests)
        kind = next(iter(requests.values())).kind
        self.seconds[kind].append(time.perf_counter() - began)
        return answers


@contextlib.contextmanager
def memory_watched() -> Iterator[list[float]]:
    """The peak of what this process and all below it hold, in GB, shared pages counted once."""
    peak, done = [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(1.0):
            total = 0
            for pid in descendants() | {os.getpid()}:
                with contextlib.suppress(OSError):
                    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
                    total += next(
                        int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")
                    )
            peak[0] = max(peak[0], total / 1e6)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()


def work(transport: Transport, rounds: int, cohort: int | None) -> dict[str, list[float]]:
    """Run the rounds; how long every kind of request took."""
    timed = Timed(transport)
    data = RemoteData.of(timed)
    options = {"rounds": rounds, "cohort": cohort, "batch_size": 10, "every": rounds, "progress": False}
    run = up.simulate(ALGORITHM, PROBLEM, data, engine=Remote(), **options)
    assert run.status == "completed", run.message
    return dict(timed.seconds)


def simulation(clients: int, rounds: int, cohort: int | None) -> dict[str, list[float]]:
    """Flower's simulation: two actors of Ray, a node for each client."""
    be_quiet()
    told: dict[str, list[float]] = {}
    server = serverapp().ServerApp()

    @server.main()  # type: ignore[untyped-decorator]
    def main(grid: Any, context: Any) -> None:
        transport = GridTransport(grid, timeout=3600.0, hello_seconds=600.0)
        transport.wait_for(clients, 600.0)
        told.update(work(transport, rounds, cohort))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from flwr.simulation import run_simulation

        backend = {"client_resources": {"num_cpus": 1}, "init_args": {"include_dashboard": False}}
        run_simulation(server, client_app(load, threads=1), clients, backend_config=backend)
    return told


def on_ray(clients: int, rounds: int, cohort: int | None) -> dict[str, list[float]]:
    """The engine for Ray: each actor holds many clients."""
    be_quiet()
    data = up.FederatedData.from_clients({number: rows(number) for number in range(clients)})
    options = {"cohort": cohort, "batch_size": 10, "progress": False}
    seconds: list[float] = []
    with contextlib.closing(up.engines.Ray()) as engine:  # type: ignore[attr-defined]
        for many in (1, 1, rounds + 1):  # the first run starts actors and reads what was compiled
            began = time.perf_counter()
            up.simulate(ALGORITHM, PROBLEM, data, engine=engine, rounds=many, every=many, **options)
            seconds.append(time.perf_counter() - began)
    first, one, all_rounds = seconds
    return {"train": [(all_rounds - one) / rounds] * rounds, "first": [first]}


def supernodes(nodes: int, rounds: int, cohort: int | None) -> dict[str, list[float]]:
    """A SuperLink and so many SuperNodes on loopback, in clear."""
    from unpooled.runs.flower import SuperLink, SuperNode, write_app

    here = Path(__file__).parent
    os.environ["PYTHONPATH"] = os.pathsep.join([str(here), os.environ.get("PYTHONPATH", "")])
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        root = Path(folder)
        link = stack.enter_context(SuperLink(root / "link", poll_seconds=1.0))
        started = []
        for number in range(nodes):
            config = {"client-id": f"{number:06d}"}
            node = SuperNode(root / str(number), link.address, node_config=config, poll_seconds=1.0)
            started.append(stack.enter_context(node))
        for node in started:
            node.until_connected(300.0)
        told_file = root / "told.json"
        settings = {"out": str(told_file), "nodes": nodes, "rounds": rounds, "cohort": cohort or 0}
        run = link.run(write_app(root / "app", "load:server", "load:client", settings))
        status = link.wait(run, 3600.0)
        assert status.is_completed, (root / "link" / f"run-{run}.log").read_text()
        told: dict[str, list[float]] = json.loads(told_file.read_text())
        return told


client = client_app(load, threads=1)
server = serverapp().ServerApp()


@server.main()  # type: ignore[untyped-decorator]
def main_of_deployment(grid: Any, context: Any) -> None:
    """The server app of ``supernodes``."""
    config = context.run_config
    transport = GridTransport(grid, timeout=3600.0, hello_seconds=600.0)
    transport.wait_for(int(config["nodes"]), 600.0)
    told = work(transport, int(config["rounds"]), int(config["cohort"]) or None)
    Path(str(config["out"])).write_text(json.dumps(told))


KINDS: dict[str, tuple[Any, int, int, int | None]] = {
    "simulation": (simulation, 1000, 20, 100),
    "ray": (on_ray, 1000, 20, None),
    "supernodes": (supernodes, 20, 3, None),
}


def main() -> None:
    """Run one kind, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kind", choices=sorted(KINDS))
    for name in ("clients", "rounds", "cohort"):
        parser.add_argument(f"--{name}", type=int)
    chosen = parser.parse_args()
    run, clients, rounds, cohort = KINDS[chosen.kind]
    clients, rounds = chosen.clients or clients, chosen.rounds or rounds
    cohort = chosen.cohort or cohort
    began = time.perf_counter()
    with memory_watched() as peak:
        told = run(clients, rounds, cohort)
    every = told.pop("train")
    print(f"{chosen.kind}: {clients} clients, {cohort or 'all'} of them a round, {len(every)} rounds")
    print(f"  {np.median(every):.3g} s a round (from {min(every):.3g} to {max(every):.3g})")
    others = ", ".join(f"{kind} {sum(seconds):.3g}" for kind, seconds in told.items())
    print(f"  other seconds: {others}; {time.perf_counter() - began:.0f} in all; {peak[0]:.1f} GB at most")


if __name__ == "__main__":
    main()
