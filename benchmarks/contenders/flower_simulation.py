"""Flower's simulation engine with our compiled local loop in its clients: what is left is its overhead.

``python -m benchmarks.contenders.flower_simulation SHAPE REPEATS`` in a process of its own, because Ray
leaves workers behind. Rounds of Flower and of our engine take turns inside the server app. Prints JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from functools import cache
from typing import Any

# Before Flower and Ray are imported, here and in their workers: nothing is reported, nothing is looked up.
os.environ |= {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.simulation import run_simulation

from benchmarks.agreement import check
from benchmarks.contenders.engine import Engine
from benchmarks.shapes import paper_shapes
from benchmarks.work import SEED, Work
from unpooled.engines import Local
from unpooled.engines.base import Task
from unpooled.kernels.arrays import Array

WARM_UP = 3  # rounds in which workers start, make their data and read compiled code


@cache
def _work(shape: str, n_rounds: int = 1) -> Work:
    chosen = next(candidate for candidate in paper_shapes() if candidate.name == shape)
    return Work(chosen, chosen.data, n_rounds)


@cache
def _clients(shape: str) -> Any:
    """The engine's clients, once in every worker."""
    work = _work(shape)
    engine = Local(threads=1)
    states = np.dtype(np.float64)
    return engine.open(
        Task(work.shape.algorithm, work.problem, SEED, work.shape.batch_size, states), work.data
    )


client = ClientApp()


@client.query()
def _who(message: Message, context: Context) -> Message:
    """Which client a node is: its own number is random."""
    about = ConfigRecord({"client": int(context.node_config["partition-id"])})
    return Message(RecordDict({"about": about}), reply_to=message)


@client.train()
def _train(message: Message, context: Context) -> Message:
    """One client's local steps."""
    about = message.content["about"]
    work = _work(str(about["shape"]))
    chosen = np.array([int(context.node_config["partition-id"])])
    down = {"h": message.content["down"]["h"].numpy()}
    clients = _clients(work.shape.name)
    now = clients.loops.round(work.problem, int(about["round"]), down)
    [(_, increments, _)] = clients.loops.whole(now, chosen, clients.memory[chosen], None)
    up = ArrayRecord.from_numpy_ndarrays([increments[0, 0]])
    return Message(
        RecordDict({"up": up, "about": ConfigRecord({"client": int(chosen[0])})}), reply_to=message
    )


class Server:
    """Fast-FedDA's server behind a grid of Flower's."""

    def __init__(self, work: Work, grid: Grid, nodes: dict[int, int]):
        self.work, self.grid, self.nodes = work, grid, nodes
        self.state = work.shape.algorithm.init(work.problem, work.flat_start)

    def round(self) -> None:
        """Send, wait for the cohort, average in the order of the clients, update."""
        work, algorithm = self.work, self.work.shape.algorithm
        now = work.rounds[self.state.round]
        sent = algorithm.broadcast(work.problem, self.state)
        about = ConfigRecord({"round": self.state.round, "shape": work.shape.name})
        messages = []
        for k in now.cohort:
            down = ArrayRecord({"h": _array(sent["h"])})
            content = RecordDict({"down": down, "about": about})
            messages.append(Message(content, dst_node_id=self.nodes[int(k)], message_type="train"))
        uploads = {}
        for reply in self.grid.send_and_receive(messages):
            content = reply.content
            uploads[content["about"]["client"]] = content["up"].to_numpy_ndarrays()[0]
        mean = sum(weight * uploads[int(k)] for k, weight in zip(now.cohort, now.weights, strict=True))
        self.state = algorithm.server_update(work.problem, self.state, {"dual_increment": mean}, 1.0)


def _array(vector: Array) -> Any:
    from flwr.app import Array as FlowerArray

    return FlowerArray(vector)


def measure(shape: str, repeats: int) -> dict[str, Any]:
    """Seconds of ``repeats`` rounds of each, taken in turns, and how far their results lie apart."""
    found: dict[str, Any] = {"flower": [], "engine": []}
    work = _work(shape, WARM_UP + repeats)
    engine = Engine(work)
    server_app = ServerApp()

    @server_app.main()
    def main(grid: Grid, context: Context) -> None:
        while len(ids := list(grid.get_node_ids())) < work.data.n_clients:
            time.sleep(0.1)
        asked = [Message(RecordDict(), dst_node_id=node, message_type="query") for node in ids]
        replies = list(grid.send_and_receive(asked))
        nodes = {reply.content["about"]["client"]: reply.metadata.src_node_id for reply in replies}
        server, federation = Server(work, grid, nodes), engine.federation()
        for r in range(WARM_UP + repeats):
            began = time.perf_counter()
            server.round()
            between = time.perf_counter()
            w = engine.advance(federation, r + 1)
            ended = time.perf_counter()
            if r >= WARM_UP:
                found["flower"].append(between - began)
                found["engine"].append(ended - between)
        theirs = work.coefficients(work.shape.algorithm.estimate(work.problem, server.state))
        found["error"] = check(f"{shape}, Flower", theirs, w, 1e-10)

    cores = os.cpu_count() or 1
    backend = {
        "init_args": {"num_cpus": cores, "include_dashboard": False},
        "client_resources": {"num_cpus": 1},
    }
    run_simulation(server_app, client, num_supernodes=work.data.n_clients, backend_config=backend)
    if "error" not in found:
        raise RuntimeError("Flower's simulation ended before its rounds were done")
    return found


if __name__ == "__main__":
    # Ray's workers must find the client app by its module's name, which __main__ is not.
    from benchmarks.contenders.flower_simulation import measure as measure_by_name

    print(json.dumps(measure_by_name(sys.argv[1], int(sys.argv[2]))))
