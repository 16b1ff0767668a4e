"""The server app: what runs at the coordinator.

    app = server_app(up.Problem(up.Logistic(), up.L1(0.01)), folder="/srv/study")      # exact, in few rounds
    app = server_app(problem, algorithm=up.FastFedDA(), options={"rounds": 100, "cohort": 10}, folder=…)

A round over Flower costs seconds, whatever is in it: the exact solvers, which need few, are the default.
"""

from __future__ import annotations

import functools
import logging
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from unpooled._files import whole_file
from unpooled.algorithms.base import Algorithm
from unpooled.engines.flower.environment import serverapp
from unpooled.engines.flower.journal import Journal
from unpooled.engines.flower.transport import GridTransport
from unpooled.engines.remote.data import RemoteData
from unpooled.engines.remote.engine import Remote
from unpooled.engines.remote.messages import Transport
from unpooled.exact.solve import solve
from unpooled.kernels.arrays import Arrays
from unpooled.problem import Problem
from unpooled.runs.simulate import simulate

log = logging.getLogger("unpooled.flower")


def server_app(
    problem: Problem,
    *,
    run: Callable[..., Any] = solve,
    algorithm: Algorithm | None = None,
    options: Mapping[str, Any] | None = None,
    folder: str | os.PathLike[str] | None = None,
    min_available_nodes: int = 2,
    min_train_nodes: int | None = None,
    norm_bound: float = math.inf,
    wait: float = 600.0,
    then: Callable[[Any], None] | None = None,
    weights: Any = "samples",
    **transport: Any,
) -> Any:
    """A ServerApp that fits a problem to the rows of the nodes, which run ``client_app``.

    Parameters
    ----------
    problem : what to fit.
    run : ``solve``, ``path``, ``cross_validate``, or any function of (problem, data, **options).
    algorithm : run this algorithm's rounds (``simulate``) instead.
    options : of ``run``; or of ``simulate``, among them ``rounds``, ``cohort`` (how many clients train in a
        round: what ``fraction_train`` is to ``CompositeStrategy``), ``seed``, ``aggregate``, ``privacy``.
    folder : for checkpoints, written in every round, and results (``model.npz``, ``summary.txt``). A server
        app that is started again with the same folder and settings goes on where the last one stood, and ends
        with the same bits. None keeps nothing. A disk that is full costs the checkpoints, not the run.
    min_available_nodes, wait : nodes that must be there before anything begins, and how long that may take.
    min_train_nodes : clients whose uploads must count for an algorithm's round to count; None for all. An
        exact answer needs everyone.
    norm_bound : an upload of a larger norm is refused in an algorithm's rounds, and its client named.
    then : is given the result, also where ``folder`` cannot take it.
    weights : of the clients, as in ``FederatedData``.
    transport : options of ``GridTransport``: ``timeout``, ``quorum``, ``grace``, …
    """
    engine = Remote(minimum=min_train_nodes, norm_bound=norm_bound)
    app = serverapp().ServerApp()

    @app.main()  # type: ignore[untyped-decorator]
    def main(grid: Any, context: Any) -> None:
        carried = GridTransport(grid, **transport)
        here = carried.wait_for(min_available_nodes, wait)
        log.info("%d sites are there: %s", len(here), ", ".join(map(repr, here)))
        task: Callable[[RemoteData], Any]
        if algorithm is not None:
            task = functools.partial(_rounds, algorithm, problem, engine, dict(options or {}), folder)
        else:
            task = functools.partial(_exact, run, problem, engine, dict(options or {}))
        result = fit(carried, task, folder if algorithm is None else None, weights)
        try:
            if folder is not None:
                write_result(Path(folder), result)
        finally:
            if then is not None:
                then(result)

    return app


def fit(
    transport: Transport,
    task: Callable[[RemoteData], Any],
    folder: str | os.PathLike[str] | None = None,
    weights: Any = "samples",
) -> Any:
    """What ``task`` makes of the rows behind a transport; with a folder, every reply is kept there."""
    if folder is not None:
        transport = Journal(transport, Path(folder) / "journal")
    return task(RemoteData.of(transport, weights=weights))


def _exact(
    run: Callable[..., Any], problem: Problem, engine: Remote, options: dict[str, Any], data: RemoteData
) -> Any:
    return run(problem, data, **{"engine": engine, **options})


def _rounds(
    algorithm: Algorithm,
    problem: Problem,
    engine: Remote,
    options: dict[str, Any],
    folder: str | os.PathLike[str] | None,
    data: RemoteData,
) -> Any:
    checkpoint: dict[str, Any] = {}
    if folder is not None:
        file = Path(folder) / "checkpoint.run"
        file.parent.mkdir(parents=True, exist_ok=True)
        checkpoint = {"checkpoint": file, "resume": file if file.exists() else None}
    return simulate(
        algorithm, problem, data, **{"engine": engine, "progress": False, **checkpoint, **options}
    )


def write_result(folder: Path, result: Any) -> None:
    """The model as ``model.npz`` and words about it as ``summary.txt``, each whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    model: Arrays = {}
    for name in ("w", "intercept", "lambdas", "coefs", "intercepts", "lam"):
        if getattr(result, name, None) is not None:
            model[name] = np.asarray(getattr(result, name))
    text = result.summary() if callable(getattr(result, "summary", None)) else repr(result)
    with whole_file(folder / "model.npz") as file:
        np.savez(file, **model)  # type: ignore[arg-type]
    with whole_file(folder / "summary.txt") as file:
        file.write(f"{text}\n".encode())
