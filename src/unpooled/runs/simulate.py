"""``simulate``: a whole federated run in one call."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from unpooled._interrupt import recorded
from unpooled._wording import counted
from unpooled.aggregation.base import Aggregate, Mean
from unpooled.aggregation.privacy import CentralDP
from unpooled.algorithms.base import Algorithm
from unpooled.algorithms.curvature import Curvature
from unpooled.data.base import check_data
from unpooled.engines.base import Data, Engine
from unpooled.engines.local import Local
from unpooled.problem import Problem
from unpooled.runs.checkpoint import Checkpoint, check_writable
from unpooled.runs.federation import WEIGHTINGS
from unpooled.runs.recorder import Metric
from unpooled.runs.run import Run, Status
from unpooled.runs.runfile import load
from unpooled.runs.settings import named, resumed
from unpooled.runs.trial import Trial

RESTARTS = 12  # of a run whose step was chosen for it, each with half the step
GROWTH = 100.0  # an objective this many times the first one's size counts as divergence in such a run


@recorded()
def simulate(
    algorithm: Algorithm,
    problem: Problem,
    data: Data,
    *,
    rounds: int | None = None,
    cohort: int | None = None,
    batch_size: int | None = None,
    seed: int = 0,
    w0: ArrayLike | None = None,
    intercept0: ArrayLike | None = None,
    metrics: Mapping[str, Metric] | None = None,
    every: int | None = None,
    dtype: DTypeLike | None = None,
    weighting: str = "renormalised",
    aggregate: Aggregate | None = None,
    privacy: CentralDP | None = None,
    engine: Engine | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: Run | str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    certify: bool = False,
) -> Run:
    """Run a federated algorithm on data whose clients are all at hand.

    Parameters
    ----------
    algorithm, problem, data : what to run on what. Hyper-parameters left open are chosen from the data,
        and the run's notes say how; if such a run diverges, it starts again with half the step.
    rounds : how many in all, also when resuming; MCFedDA with stages knows it.
    cohort : clients sampled in each round, without replacement; None for all.
    batch_size : rows of a local step's minibatch; None for full gradients. With both None a run is
        deterministic whatever the seed.
    seed : a whole number ≥ 0. The same seed gives the same bits on any number of threads.
    w0, intercept0 : the start; zero where None.
    metrics : functions of w (of w and the intercept where the problem has one), recorded in the history.
    every : record the objective and the metrics every so many rounds, and at the end; None records about
        a hundred times.
    dtype : None keeps the data's precision and works with float64 states; "float32" or "float64" for both.
    weighting : of a sampled cohort: "renormalised" π_k / Σ π_k, or "unbiased" (K/S) π_k.
    aggregate : what the server makes of uploads; ``Mean()`` where None. ``TrimmedMean`` and
        ``CoordinateMedian`` withstand a few clients that send anything.
    privacy : ``CentralDP`` for client-level differential privacy; the algorithm's numbers must be given then.
    engine : where clients run; ``engines.Local()`` where None.
    checkpoint : a file to save the run to, every few seconds (after every round where the rows are elsewhere)
        and at the end. If it cannot be written, for want of space, the run goes on and the file stays as it
        was; a warning is logged once, and the run's notes say so if the end is not in the file.
    resume : a run, or the file of one, to go on from; it must have had the same settings.
    progress : show a bar on stderr; None shows it on a terminal.
    certify : end with one more round, in which every client answers with the loss and the gradient of its
        rows: ``certificate`` of the run then says how far its last iterate is from the optimum, by a duality
        gap, or by a KKT residual where the loss or the penalty has no dual.

    Returns
    -------
    Run
        Its ``status`` is "completed", "diverged", "interrupted" (Ctrl-C) or "exhausted" (the privacy
        budget); its w is always finite. ``best`` is the recorded iterate with the smallest objective; the
        notes say where the objective has risen since.
    """
    _check_parts(algorithm, problem, data, engine, metrics, checkpoint)
    aggregate = Mean() if aggregate is None else aggregate
    check_server(algorithm, aggregate, privacy)
    if metrics and privacy is not None and not privacy.history:
        raise ValueError("history=False records nothing, so there is no place for metrics")
    if certify:
        _check_certifiable(problem, engine, privacy)
    rounds = _rounds(rounds, algorithm)
    options: dict[str, Any] = {
        "rounds": rounds,
        "cohort": None if cohort is None else _whole("cohort", cohort, 1),
        "batch_size": None if batch_size is None else _whole("batch_size", batch_size, 1),
        "seed": _whole("seed", seed, 0),
        "weighting": weighting,
        "aggregate": None if isinstance(aggregate, Mean) else named(aggregate),
        "privacy": None if privacy is None else privacy.settings(),
    }
    every = max(1, rounds // 100) if every is None else _whole("every", every, 1)
    _check_options(options, data)
    previous = load(resume) if isinstance(resume, str | os.PathLike) else resume
    if previous is not None:
        _check_previous(previous, rounds)

    data = data if dtype is None else data.astype(dtype)
    states = np.dtype(np.float64 if dtype is None else dtype)
    if problem.has_site_intercepts:
        raise ValueError("intercept='sites' needs an exact solver: use solve; or intercept=True")
    bound = problem.bind(data)
    private = None
    if privacy is not None:
        privacy.check(algorithm, problem, data, rounds)
        spent = None if previous is None else previous.privacy
        private = privacy.open(algorithm, data.n_clients, options["cohort"], rounds, spent)
    trial = Trial(
        asked=algorithm,
        problem=bound,
        data=data,
        start=bound.layout.pack(w0, intercept0, "w0", "intercept0"),
        dtype=states,
        options={**options, "dtype": str(states)},
        metrics=dict(metrics or {}),
        every=every,
        engine=engine or data.engine or Local(),
        aggregate=aggregate,
        private=private,
        previous=previous,
        # a round between machines takes far longer than to save it
        checkpoint=None if checkpoint is None else Checkpoint(Path(checkpoint), data.engine is not None),
        progress=progress,
        certify=certify,
    )
    curvature = Curvature(problem, data, options["batch_size"], options["cohort"])
    if previous is None:
        resolved, notes = algorithm.resolve(curvature, rounds)
        if private is not None:
            notes = [*notes, *private.choices(data.weights, rounds)]
        said = notes
    else:
        resolved, said = resumed(algorithm, previous.settings, rounds)
        account = [] if previous.privacy is None else previous.privacy.notes()
        ended = [*account, *previous.findings]  # new ones follow
        notes = [*(note for note in previous.notes if note not in ended), *said]
    for left in range(RESTARTS, -1, -1):
        gentler = algorithm.gentler(resolved) if left else None
        run = trial.run(resolved, notes, said, curvature.rounds, math.inf if gentler is None else GROWTH)
        if run.status != Status.DIVERGED or gentler is None:
            break
        again, number = gentler
        resolved, _ = again.resolve(curvature, rounds)
        trial = dataclasses.replace(trial, previous=None)
        said = [f"{run.message} It was started again with half the step, {number}."]
        notes = [*notes, *said]
    return run


def _check_parts(
    algorithm: object,
    problem: object,
    data: object,
    engine: object,
    metrics: object,
    checkpoint: str | os.PathLike[str] | None,
) -> None:
    """Refuse what is not of its kind, before anything is computed."""
    if not isinstance(algorithm, Algorithm):
        hint = f"; did you mean {algorithm.__name__}(…)?" if isinstance(algorithm, type) else ""
        raise TypeError(f"algorithm must be one of unpooled's algorithms, got {algorithm!r}{hint}")
    if not isinstance(problem, Problem):
        raise TypeError(f"problem must be a Problem(loss, penalty), got {problem!r}")
    check_data(data)
    if engine is not None and not callable(getattr(engine, "open", None)):
        raise TypeError(f"engine must be one of unpooled.engines, such as engines.Local(), got {engine!r}")
    if metrics is not None and not isinstance(metrics, Mapping):
        raise TypeError(f"metrics must map names to functions, got {type(metrics).__name__}")
    for name, metric in (metrics or {}).items():
        if name in ("round", "objective") or not callable(metric):
            raise ValueError(
                f"metric {name!r} must be a function under a name other than round and objective"
            )
    if checkpoint is not None:
        check_writable(checkpoint)


def check_server(algorithm: Algorithm, aggregate: object, privacy: object) -> None:
    """Refuse what is not an aggregate or a kind of privacy, and what does not go together."""
    if not isinstance(aggregate, Aggregate):
        hint = f"; did you mean {aggregate.__name__}(…)?" if isinstance(aggregate, type) else ""
        raise TypeError(f"aggregate must be Mean(), TrimmedMean(…) or the like, got {aggregate!r}{hint}")
    if privacy is not None and not isinstance(privacy, CentralDP):
        raise TypeError(f"privacy must be a CentralDP(…), got {privacy!r}")
    if privacy is not None and not isinstance(aggregate, Mean):
        raise ValueError(f"privacy is accounted for means only, not for {aggregate!r}")
    if privacy is not None or not isinstance(aggregate, Mean):
        algorithm.check_not_averaged()


def _check_certifiable(problem: Problem, engine: object, privacy: object) -> None:
    """Refuse a certificate where there can be none."""
    if privacy is not None:
        raise ValueError(
            "certify asks every client for its exact loss and gradient, which privacy does not account for: "
            "leave certify out of a private run"
        )
    if not math.isinf(problem.ball):
        raise ValueError(f"certify does not know the constraint ball={problem.ball:g}: leave one of them out")
    if engine is not None and not callable(getattr(engine, "open_oracles", None)):
        raise ValueError(f"certify needs an engine whose clients answer exact questions, got {engine!r}")


def _check_options(options: dict[str, Any], data: Data) -> None:
    """Refuse numbers that do not fit the data, and unknown weightings."""
    if options["cohort"] is not None and options["cohort"] > data.n_clients:
        raise ValueError(f"cohort={options['cohort']}, but the data has {counted(data.n_clients, 'client')}")
    if options["seed"] >= 2**64:
        raise ValueError(f"seed must be below 2**64, got {options['seed']}")
    if options["weighting"] not in WEIGHTINGS:
        raise ValueError(f"weighting must be one of {', '.join(WEIGHTINGS)}, got {options['weighting']!r}")


def _check_previous(previous: Run, rounds: int) -> None:
    """Refuse a run from which there is nothing to go on."""
    if previous.status == Status.DIVERGED:
        raise ValueError(f"the run to resume diverged, there is nothing to go on from: {previous.message}")
    if previous.state.round > rounds:
        raise ValueError(
            f"the run to resume has done {counted(previous.state.round, 'round')}, more than rounds={rounds}"
        )


def _rounds(rounds: object, algorithm: Algorithm) -> int:
    """The number of rounds, given or prescribed by the algorithm."""
    planned = algorithm.planned_rounds()
    rounds = planned if rounds is None else rounds
    if rounds is None:
        raise ValueError("rounds is missing: how many rounds should the run have?")
    whole = _whole("rounds", rounds, 1)
    if planned is not None and whole > planned:
        raise ValueError(f"rounds={whole}, but the stages of {type(algorithm).__name__} end after {planned}")
    return whole


def _whole(name: str, number: object, least: int) -> int:
    """A whole number as an int, refused where it is not one or too small."""
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < least:
        raise ValueError(f"{name} must be a whole number ≥ {least}, got {number!r}")
    return int(number)
