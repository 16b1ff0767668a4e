"""Any of the library's algorithms as a strategy of Flower's, for server apps of one's own.

    strategy = CompositeStrategy(up.FastFedDA(…), problem, fraction_train=0.5, min_train_nodes=2, seed=0)

    @app.main()
    def main(grid, context):
        result = strategy.start(grid, strategy.initial_arrays(grid), num_rounds=20)
        w, intercept = strategy.estimate(result.arrays)

The nodes run ``flower.client_app``. The arrays are the algorithm's state (a dual vector for dual averaging)
and not the model, which ``estimate`` makes of them. The same seed gives the bits of ``simulate``. Flower's
wrappers for differential privacy expect a model back from every node, and do not fit: ``privacy`` does.
"""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from unpooled._interrupt import recorded
from unpooled._ledger import Ledger
from unpooled.aggregation.base import Aggregate, Mean
from unpooled.aggregation.privacy import CentralDP, Spent
from unpooled.aggregation.privacy.private_mean import PrivateMean
from unpooled.algorithms.base import Algorithm, State
from unpooled.algorithms.curvature import Curvature
from unpooled.engines.base import Broadcast, DivergenceError, Task
from unpooled.engines.flower.environment import app, serverapp
from unpooled.engines.flower.records import array_record, arrays_of
from unpooled.engines.flower.transport import GridTransport, RoundMessages
from unpooled.engines.remote.data import RemoteData
from unpooled.engines.remote.engine import Remote, RemoteClients
from unpooled.engines.remote.failures import TooFewClientsError
from unpooled.engines.remote.messages import Failure
from unpooled.kernels.draws import cohort as sample_cohort
from unpooled.problem import Problem
from unpooled.runs.federation import WEIGHTINGS, Federation, Position
from unpooled.runs.flower.loss import mean_loss, questions
from unpooled.runs.simulate import check_server

log = logging.getLogger("unpooled.flower")

OTHERWISE = {
    "weighted_by_key": "clients count by their rows, or equally (weighting)",
    "train_metrics_aggr_fn": "a round's metrics are its number and the bytes of all rounds",
    "evaluate_metrics_aggr_fn": "nodes tell their loss, and its mean is weighted as in training",
    "arrayrecord_key": "messages have records of unpooled's own",
    "configrecord_key": "messages have records of unpooled's own",
}  # words of Flower's strategies that have no meaning here, and why


class _Opened(NamedTuple):
    """What there is once the nodes have said what rows they have."""

    federation: Federation
    clients: RemoteClients
    data: RemoteData
    messages: RoundMessages


class CompositeStrategy(serverapp().strategy.Strategy):  # type: ignore[misc]
    """minimise Σ_k π_k L_k(w) + h(w) by one of the library's algorithms, in Flower's rounds.

    Parameters
    ----------
    algorithm, problem : as in ``simulate``. What an algorithm leaves open is measured at the nodes first.
    fraction_train : the part of the nodes that trains in a round, drawn by the seed.
    fraction_evaluate : the part that tells its loss after a round. 0 asks nobody, and is the default, unlike
        Flower's own 1: a second message in a round takes as long as the first.
    min_train_nodes : uploads that must count for a round to count; the least number of nodes drawn, too.
    min_evaluate_nodes : the least number of nodes that are asked for their loss, where any are.
    min_available_nodes : nodes that must be there before anything begins.
    batch_size, seed, weighting, dtype : as in ``simulate``.
    aggregate, privacy : as in ``simulate``. What privacy costs is ``spent``.
    rounds : how many are planned, for algorithms whose open hyper-parameters depend on it, and for
        ``privacy``: no node is asked to train in more rounds than these, nor than the budget allows.
    norm_bound : an upload of a larger norm is refused, and its client named.
    wait : seconds to wait for ``min_available_nodes``.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        problem: Problem,
        *,
        fraction_train: float = 1.0,
        fraction_evaluate: float = 0.0,
        min_train_nodes: int = 2,
        min_evaluate_nodes: int = 2,
        min_available_nodes: int = 2,
        batch_size: int | None = None,
        seed: int = 0,
        weighting: str = "renormalised",
        aggregate: Aggregate | None = None,
        privacy: CentralDP | None = None,
        dtype: DTypeLike | None = None,
        rounds: int | None = None,
        norm_bound: float = math.inf,
        wait: float = 600.0,
        **others: Any,
    ):
        for name in others:
            why = OTHERWISE.get(name)
            raise TypeError(f"CompositeStrategy takes no {name}" + (f": {why}" if why else ""))
        for name, part in (("fraction_train", fraction_train), ("fraction_evaluate", fraction_evaluate)):
            if not 0.0 <= part <= 1.0:
                raise ValueError(f"{name} must be between 0 and 1, got {part!r}")
        asked = {"min_train_nodes": min_train_nodes}
        if fraction_evaluate:
            asked["min_evaluate_nodes"] = min_evaluate_nodes
        for name, least in asked.items():
            if not 1 <= least <= min_available_nodes:
                raise ValueError(
                    f"{name} must be at least 1 and at most min_available_nodes, got {least} and "
                    f"{min_available_nodes}"
                )
        if weighting not in WEIGHTINGS:
            raise ValueError(f"weighting must be one of {', '.join(WEIGHTINGS)}, got {weighting!r}")
        aggregate = Mean() if aggregate is None else aggregate
        check_server(algorithm, aggregate, privacy)
        if privacy is not None and rounds is None:
            raise ValueError("privacy is accounted for a number of rounds: give rounds")
        if privacy is not None and not privacy.history and fraction_evaluate:
            raise ValueError("history=False records nothing of the rows: fraction_evaluate must be 0")
        self.algorithm, self.problem = algorithm, problem
        self.fraction_train, self.fraction_evaluate = fraction_train, fraction_evaluate
        self.min_train_nodes, self.min_evaluate_nodes = min_train_nodes, min_evaluate_nodes
        self.min_available_nodes = min_available_nodes
        self.batch_size, self.seed, self.weighting, self.dtype = batch_size, seed, weighting, dtype
        self.aggregate, self.privacy = aggregate, privacy
        self.rounds, self.wait = rounds, wait
        self.engine = Remote(minimum=min_train_nodes, retries=0, norm_bound=norm_bound)
        self.notes: list[str] = []
        self.round = 0  # our own: Flower's begins at 1 in every start, and goes on when a round did not count
        self._choices: list[str] = []  # what was chosen for the algorithm, and for privacy
        self._opened: _Opened | None = None
        self._sent: Broadcast | None = None  # in the round under way
        self._penalty = 0.0  # at the model that was last asked about

    @property
    def federation(self) -> Federation:
        """The server's side of the rounds, once the nodes have told how their rows look."""
        return self._known.federation

    @property
    def _known(self) -> _Opened:
        if self._opened is None:
            raise RuntimeError("the nodes are not known yet: initial_arrays(grid) asks them")
        return self._opened

    @property
    def spent(self) -> Spent | None:
        """What the rounds so far have cost of privacy; None where none was asked for."""
        private = self.federation.private
        return None if private is None else private.spent(self.round)

    @recorded()
    def start(self, *arguments: Any, **options: Any) -> Any:
        """Flower's rounds. An interrupt that gets lost in one of them ends them before the next."""
        return super().start(*arguments, **options)

    def initial_arrays(
        self, grid: Any, w0: ArrayLike | None = None, intercept0: ArrayLike | None = None
    ) -> Any:
        """The state before the first round, for ``start``; the nodes are asked what rows they have."""
        federation = self._open(grid).federation
        problem = federation.problem
        start = problem.layout.pack(w0, intercept0, "w0", "intercept0")
        first = federation.algorithm.init(federation.algorithm.problem_at(problem, 0), start)
        self.round = 0
        return array_record(first.arrays)

    def estimate(self, arrays: Any) -> tuple[Any, Any]:
        """The model that a state stands for: w in the shape of the coefficients, the intercept or None."""
        federation = self.federation
        state = State(self.round, arrays_of(arrays))
        return federation.problem.layout.unpack(federation.algorithm.estimate(federation.problem, state))

    def configure_train(self, server_round: int, arrays: Any, config: Any, grid: Any) -> Iterable[Any]:
        """The messages of a round: what the algorithm broadcasts, to the nodes that are drawn for it."""
        with recorded() as interrupt:
            interrupt.check()
        opened, self._sent = self._open(grid), None
        federation = opened.federation
        state = State(self.round, arrays_of(arrays))
        federation.position = dataclasses.replace(federation.position, state=state)
        if self._is_exhausted(federation.private):
            return []
        self._sent = federation.ask()
        return opened.messages.write(opened.clients.requests(self._sent), "train", server_round)

    def aggregate_train(self, server_round: int, replies: Iterable[Any]) -> tuple[Any, Any]:
        """The next state; None where too few uploads count, and then the round is done again."""
        opened, sent = self._known, self._sent
        if sent is None:
            return None, None
        federation, clients = opened.federation, opened.clients
        silent = dict.fromkeys(opened.data.holders, Failure("it did not answer in time"))
        answers = {**silent, **opened.messages.read(replies)}
        try:
            gathered = clients.gathered(sent, answers, federation.weigh, federation.combined_by)
        except TooFewClientsError as error:
            log.warning("%s", error)
            return None, None
        except DivergenceError as error:
            name = federation.data.ids[error.client]
            log.warning("round %d does not count: client %r sent what is not finite", self.round + 1, name)
            return None, None
        state = federation.update(sent, gathered)
        for sentence in clients.notes():
            if sentence not in self.notes:
                log.warning("%s", sentence)
        self.round = state.round
        account = [] if self.spent is None else self.spent.notes()
        self.notes = [*self._choices, *clients.notes(), *account]
        ledger = federation.position.ledger
        metrics = {"round": state.round, "bytes-up": ledger.bytes_up, "bytes-down": ledger.bytes_down}
        return array_record(state.arrays), app().MetricRecord(metrics)

    def configure_evaluate(self, server_round: int, arrays: Any, config: Any, grid: Any) -> Iterable[Any]:
        """Ask for the loss of the model that the state stands for."""
        if not self.fraction_evaluate:
            return []
        opened = self._known
        data = opened.data
        size = max(self.min_evaluate_nodes, round(self.fraction_evaluate * data.n_clients))
        w, intercept = self.estimate(arrays)
        self._penalty = float(self.problem.penalty.value(w))
        chosen = sample_cohort(self.seed, self.round, data.n_clients, size)
        asked = questions(data, self.problem, w, intercept, chosen)
        return opened.messages.write(asked, "evaluate", server_round)

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Any]) -> Any:
        """The mean loss, weighted as in training, and the objective."""
        loss = mean_loss(self._known.data, self._known.messages.read(replies))
        if loss is None:
            return None
        return app().MetricRecord({"loss": loss, "objective": loss + self._penalty})

    def summary(self) -> None:
        """Say what is run, as Flower's own strategies do."""
        log.info("\t├──> %s on %s", self.algorithm, self.problem)
        log.info(
            "\t├──> fraction_train %g, fraction_evaluate %g", self.fraction_train, self.fraction_evaluate
        )
        log.info("\t├──> at least %d of %d nodes", self.min_train_nodes, self.min_available_nodes)
        log.info("\t├──> %s, %s, %s", self.weighting, self.aggregate, self.privacy or "not private")
        log.info("\t└──> batch_size %s, seed %d", self.batch_size, self.seed)

    def _open(self, grid: Any) -> _Opened:
        """Ask the nodes what their rows are, once."""
        if self._opened is not None:
            return self._opened
        transport = GridTransport(grid)
        transport.wait_for(self.min_available_nodes, self.wait)
        data = RemoteData.of(transport)
        states = np.dtype(np.float64 if self.dtype is None else self.dtype)
        data = data if self.dtype is None else data.astype(self.dtype)
        bound = data.bind(self.problem)
        size = max(self.min_train_nodes, round(self.fraction_train * data.n_clients))
        cohort = size if size < data.n_clients else None
        private = self._private(data, cohort)
        algorithm, self._choices = self.algorithm.resolve(
            Curvature(self.problem, data, self.batch_size, cohort), self.rounds
        )
        if private is not None and self.rounds is not None:
            self._choices = [*self._choices, *private.choices(data.weights, self.rounds)]
        self.notes = self._choices
        task = Task(algorithm, bound, self.seed, self.batch_size, states)
        clients = self.engine.open(task, data)
        federation = Federation(
            task=task,
            data=data,
            clients=clients,
            cohort=cohort,
            weighting=self.weighting,
            position=Position(State(0, {}), Ledger()),
            aggregate=self.aggregate,
            private=private,
        )
        self._opened = _Opened(federation, clients, data, RoundMessages(transport))
        return self._opened

    def _private(self, data: RemoteData, cohort: int | None) -> PrivateMean | None:
        """The server's part in a private run, before anything is measured at the nodes."""
        if self.privacy is None or self.rounds is None:
            return None
        self.privacy.check(self.algorithm, self.problem, data, self.rounds)
        return self.privacy.open(self.algorithm, data.n_clients, cohort, self.rounds, None)

    def _is_exhausted(self, private: PrivateMean | None) -> bool:
        """Whether another round would exceed what was asked of privacy; then it is said."""
        if private is None or self.rounds is None:
            return False
        last = private.rounds_within(self.rounds)
        if self.round < last:
            return False
        log.warning("no more rounds after %d of %d: %s", self.round, self.rounds, private.spent(self.round))
        return True
