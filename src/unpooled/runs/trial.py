"""One attempt at a run: from its start, or from where a saved run stopped, to its end, whatever that is."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from unpooled._interrupt import recorded
from unpooled._ledger import Ledger
from unpooled._version import versions
from unpooled.aggregation.base import Aggregate
from unpooled.aggregation.privacy.private_mean import PrivateMean
from unpooled.algorithms.base import Algorithm, State
from unpooled.engines.base import Data, DivergenceError, Engine, Say, Task
from unpooled.engines.remote.failures import SiteLostError
from unpooled.exact.anderson import AndersonProxGradient
from unpooled.exact.base import opened
from unpooled.exact.certificate import Certificate
from unpooled.exact.clients import Question
from unpooled.exact.oracle import NONE
from unpooled.exact.rounds import Server
from unpooled.kernels.arrays import Float
from unpooled.problem import BoundProblem
from unpooled.runs.checkpoint import Checkpoint
from unpooled.runs.federation import Federation, Position
from unpooled.runs.progress import Bar
from unpooled.runs.recorder import Metric, Recorder, risen
from unpooled.runs.run import Run, Status
from unpooled.runs.settings import check_same, describe

Result = Callable[[Status, str], Run]


@dataclass(frozen=True)
class Trial:
    """Everything about a run except its algorithm's numbers, which may need more than one attempt."""

    asked: Algorithm  # as the user gave it
    problem: BoundProblem
    data: Data
    start: Float
    dtype: np.dtype[Any]
    options: Mapping[str, Any]  # rounds, cohort, batch_size, seed, dtype, weighting, aggregate, privacy
    metrics: Mapping[str, Metric]
    every: int
    engine: Engine
    aggregate: Aggregate
    private: PrivateMean | None
    previous: Run | None
    checkpoint: Checkpoint | None
    progress: bool | None
    certify: bool

    def run(
        self, algorithm: Algorithm, notes: list[str], said: Sequence[str], setup_rounds: int, growth: float
    ) -> Run:
        """The run with this algorithm.

        An objective ``growth`` times the size of the first one counts as divergence. Of its ``notes``,
        those in ``said`` are shown above the progress bar.
        """
        settings = describe(self.asked, algorithm, self.problem.problem, self.data, self.start, self.options)
        recorder = Recorder(algorithm, self.problem, self.data, self.metrics)
        done = 0 if self.previous is None else self.previous.state.round
        bar = Bar(type(algorithm).__name__, self.options["rounds"], done, self.progress)
        federation = self._federation(algorithm, settings, setup_rounds, bar.say)
        before = 0.0
        if self.previous is not None:
            recorder.go_on(self.previous, self.every)
            before = self.previous.seconds
        began = time.perf_counter()

        def result(status: Status, message: str) -> Run:
            """What there is to show now; after a divergence, the last state with a finite objective."""
            state = federation.state
            if status == Status.DIVERGED and recorder.good is not None:
                state = recorder.good
            spent = None if self.private is None else self.private.spent(federation.state.round)
            w, intercept = self.problem.layout.unpack(algorithm.estimate(self.problem, state))
            return Run(
                w=w,
                intercept=intercept,
                status=status,
                message=message,
                history=recorder.history(),
                ledger=federation.position.ledger,
                settings=settings,
                notes=[*notes, *federation.clients.notes(), *([] if spent is None else spent.notes())],
                versions=versions(),
                seed=self.options["seed"],
                seconds=before + time.perf_counter() - began,
                state=state,
                memory=federation.memory(),
                privacy=spent,
                best=recorder.best,
            )

        # BLAS threads that spin after a product would take the cores from the clients' threads.
        with threadpool_limits(limits=1, user_api="blas"):
            run = self._drive(federation, recorder, bar, growth, result, said)
            self._close(run)
        if self.checkpoint is not None:
            self.checkpoint.finish(run)
        return run

    def _close(self, run: Run) -> None:
        """Note what is known at the end: how far the optimum is, and whether the objective has risen."""
        rise = None if run.status == Status.DIVERGED else risen(run.history)
        said = [] if rise is None else [rise]
        if self.certify and run.status == Status.COMPLETED:
            server = Server(self.engine.open_oracles(self.data), run.ledger)
            w = self.problem.layout.pack(run.w, run.intercept)
            try:
                run.certificate = certificate_at(self.problem, w, server)
            except (SiteLostError, KeyboardInterrupt) as lost:
                why = str(lost) or "interrupted"
                said.append(
                    f"there is no certificate ({why}): simulate(…, resume=…, certify=True) asks again."
                )
            run.ledger = server.ledger
        run.findings = said
        run.notes += said

    def _federation(
        self, algorithm: Algorithm, settings: dict[str, Any], setup_rounds: int, say: Say
    ) -> Federation:
        memory, ledger, state = None, Ledger(setup_rounds=setup_rounds), None
        if self.previous is not None:
            check_same(self.previous.settings, settings)
            memory, ledger, state = self.previous.memory, self.previous.ledger, self.previous.state
        options = self.options
        task = Task(algorithm, self.problem, options["seed"], options["batch_size"], self.dtype)
        clients = self.engine.open(task, self.data, memory, say)
        if state is None:
            state = algorithm.init(algorithm.problem_at(self.problem, 0), self.start)
        return Federation(
            task=task,
            data=self.data,
            clients=clients,
            cohort=options["cohort"],
            weighting=options["weighting"],
            position=Position(state, ledger),
            aggregate=self.aggregate,
            private=self.private,
        )

    def _drive(
        self,
        federation: Federation,
        recorder: Recorder,
        bar: Bar,
        growth: float,
        result: Result,
        said: Sequence[str],
    ) -> Run:
        """Run the rounds; however they end, there is a result."""
        rounds, done = self.options["rounds"], federation.state.round
        last = rounds if self.private is None else self.private.rounds_within(rounds)
        is_recorded = self.private is None or self.private.asked.history
        limit = math.inf
        with recorded() as interrupt, bar:
            for sentence in said:
                bar.say(sentence)
            try:
                if is_recorded and (done % self.every == 0 or done == last) and recorder.lacks(done):
                    first = recorder.record(federation.state)
                    if not math.isfinite(first):
                        return result(Status.DIVERGED, f"The objective is {first} at the start.")
                    bar.show(done, first)
                if is_recorded:
                    limit = growth * (1.0 + abs(recorder.columns["objective"][0]))
                interrupt.check()
                for state in federation.rounds(last):
                    done, objective = state.round, None
                    if done % self.every == 0 or done == last:
                        objective = recorder.record(state) if is_recorded else None
                        if objective is not None and not (math.isfinite(objective) and objective <= limit):
                            return result(
                                Status.DIVERGED, f"The objective was {objective:.3g} after round {done}."
                            )
                    if self.checkpoint is not None and self.checkpoint.is_due():
                        message = f"Saved after round {done} of {rounds}."
                        self.checkpoint.keep(result(Status.INTERRUPTED, message))
                    bar.show(done, objective)
                    interrupt.check()
            except DivergenceError as failure:
                client = self.data.ids[failure.client]
                message = f"The upload of client {client!r} was not finite in round {done + 1}."
                return result(Status.DIVERGED, message)
            except KeyboardInterrupt:
                message = f"Interrupted after round {done} of {rounds}; simulate(…, resume=…) goes on."
                return result(Status.INTERRUPTED, message)
            if last < rounds and self.private is not None:
                return result(Status.EXHAUSTED, self.private.ended(last, rounds))
            return result(
                Status.COMPLETED,
                "The one round was done." if rounds == 1 else f"All {rounds} rounds were done.",
            )


def certificate_at(problem: BoundProblem, w: Float, server: Server) -> Certificate:
    """The certificate of a flat w, by one round: every client answers with its loss, gradient and moments."""
    solver = AndersonProxGradient()
    w = np.asarray(w, dtype=np.float64)
    [total] = server.ask([Question(solver, problem, {"w": w, "features": NONE})])
    return solver.certificate(problem, State(1, opened(problem, solver.init(problem, w), total)))
