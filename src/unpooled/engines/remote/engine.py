"""The engine of data whose rows are elsewhere: requests to their holders, uploads in the replies."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from unpooled._ledger import Traffic
from unpooled._wording import counted
from unpooled.aggregation.base import Aggregate
from unpooled.engines.base import Broadcast, DivergenceError, Gathered, Memory, Say, Task, Weigh, say_nothing
from unpooled.engines.local.columns.layouts import SEVERAL, Tally, chosen_layout
from unpooled.engines.local.columns.sparse_rows import SparseSum
from unpooled.engines.local.engine import first_memory
from unpooled.engines.local.loops import Loops, is_coordinatewise
from unpooled.engines.remote.failures import TooFewClientsError, exchange
from unpooled.engines.remote.messages import Failure, Holder, Reply, Request
from unpooled.engines.remote.oracles import RemoteOracles
from unpooled.engines.remote.replies import one_each
from unpooled.engines.remote.specs import encode
from unpooled.engines.remote.uploads import (
    NOT_FINITE,
    Batch,
    Expected,
    UploadError,
    add_whole,
    in_order,
    read,
    unsound,
)
from unpooled.exact.expected import Rule
from unpooled.kernels.arrays import Array, Arrays
from unpooled.kernels.rows import SparseRows
from unpooled.problem import BoundProblem

if TYPE_CHECKING:
    from unpooled.engines.remote.data import RemoteData

Answers = Mapping[Holder, Reply | Failure]


class RemoteClients:
    """All clients of a run, at the holders of ``data``.

    ``round`` is ``requests``, an exchange over the data's transport, and ``gathered``; where somebody else
    carries the messages (Flower's strategies), the two are called one by one.

    Parameters
    ----------
    say : told which clients a round went on without.
    minimum : clients that must take part in a round; None for the whole cohort. Holders that do not answer
        are asked again, ``retries`` times; then, as where an upload is refused, the round goes on without
        their clients, if ``minimum`` remain. ``notes`` says who was left out.
    keeps : who keeps what clients remember from round to round. With "server" it comes and goes with every
        request, and nothing is lost with a holder; with "client" it stays with the holder, and the server
        knows for each client which of its rounds counted last: that is then ``memory``, (K,).
    norm_bound : an upload of a larger norm is refused.
    """

    def __init__(
        self,
        task: Task,
        data: RemoteData,
        memory: Array | None = None,
        say: Say = say_nothing,
        *,
        minimum: int | None = None,
        retries: int = 1,
        keeps: str = "client",
        norm_bound: float = math.inf,
    ):
        self.algorithm, self.layout, self.dtype = task.algorithm, task.problem.layout, task.dtype
        self.data, self.say = data, say
        self.minimum = minimum
        self.retries = retries
        self.norm_bound = norm_bound
        self.left_out: list[tuple[int, str, str]] = []  # round, client, why
        self.keeps = keeps if self.algorithm.memory else "nobody"
        if self.keeps == "client":
            self.memory = np.full(data.n_clients, -1) if memory is None else np.array(memory, np.int64)
            if self.memory.shape != (data.n_clients,):
                raise ValueError("the run to resume kept its clients' memory elsewhere: start it anew")
        else:
            self.memory = first_memory(task, data.n_clients, memory)
        spec, self._arrays = encode(self.algorithm, data.trusted, "algorithm")
        self._run = {
            "algorithm": spec,
            "seed": int(task.seed),
            "batch_size": task.batch_size,
            "states": str(task.dtype),
            "memory": self.keeps,
            "layout": None,
        }
        self._knows_layout = False
        # the server runs the local loop itself, on no rows: that is how coordinates move without a gradient
        starts, nothing = np.zeros(2, np.int32), np.empty(0, data.dtype)
        rows = SparseRows(nothing, np.empty(0, np.int32), starts, data.n_features, nothing, nothing)
        self._loops = Loops(task, rows, np.zeros(2, np.int64))

    def remember(self, memory: Memory) -> None:
        """Keep what clients computed for themselves in a round that counts."""
        cohort, rows = memory
        self.memory[cohort] = rows

    def notes(self) -> list[str]:
        """Who was left out of how many rounds, and why the last time."""
        missed = Counter(name for _, name, _ in self.left_out)
        last = {name: (round, why) for round, name, why in self.left_out}
        return [
            f"client {name} was left out of {counted(missed[name], 'round')}, last of round {at + 1}: {why}."
            for name, (at, why) in last.items()
        ]

    def round(self, sent: Broadcast, weigh: Weigh, aggregate: Aggregate) -> Gathered:
        """Ask the holders of the cohort and combine what they upload (see ``gathered``)."""
        replies, silent = exchange(self.data.transport, self.requests(sent), self.retries)
        return self.gathered(
            sent, {**replies, **{h: Failure(why) for h, why in silent.items()}}, weigh, aggregate
        )

    def requests(self, sent: Broadcast) -> dict[Holder, Request]:
        """What each holder with clients of the cohort is asked."""
        self._choose_layout(sent.problem)
        spec, arrays = encode(sent.problem, self.data.trusted, "problem")
        arrays |= self._arrays | {f"down/{name}": vector for name, vector in sent.down.items()}
        told = {"run": self._run, "problem": spec, "round": sent.round, "down": list(sent.down)}
        return {holder: self._request(holder, told, arrays, own) for holder, own in self._asked(sent).items()}

    def gathered(self, sent: Broadcast, answers: Answers, weigh: Weigh, aggregate: Aggregate) -> Gathered:
        """What the uploads that count come to.

        Raises ``TooFewClientsError`` where too few do, or ``DivergenceError`` where that is because uploads
        are not finite.
        """
        expected = self._expected(sent)
        batches, reasons = self._uploads(sent, answers, expected)
        present = np.array([k for k in sent.cohort.tolist() if k not in reasons], dtype=np.int64)
        self._check(sent, present, reasons)
        weights, participation = weigh(present)
        if expected.names_features:
            uploads = in_order(present, batches, expected)
            total = SparseSum(aggregate, self._base(sent), weights, self.layout, self.dtype)
            total.add(slice(0, len(present)), uploads)
            mean, traffic = total.mean, total.sent
        else:
            mean = np.zeros((len(self.algorithm.uploads), self.layout.size))
            add_whole(mean, weights, present, batches, aggregate)
            numbers = len(present) * mean.size
            traffic = Traffic(numbers, numbers * self.dtype.itemsize)
        vectors = dict(zip(self.algorithm.uploads, mean, strict=True))
        return Gathered(vectors, participation, present, self._memory(sent.round, present, batches), traffic)

    def _asked(self, sent: Broadcast) -> dict[Holder, Array]:
        """The holders that have clients of the cohort, and which."""
        asked = {holder: np.intersect1d(own, sent.cohort) for holder, own in self.data.holders.items()}
        return {holder: own for holder, own in asked.items() if own.size}

    def _uploads(
        self, sent: Broadcast, answers: Answers, expected: Expected
    ) -> tuple[list[Batch], dict[int, str]]:
        """The uploads that arrived, and for each client without one that counts the reason."""
        batches, reasons = [], dict[int, str]()
        for holder, own in self._asked(sent).items():
            try:
                answer = answers[holder]
                if isinstance(answer, Failure):
                    raise UploadError(answer.reason)
                batch = read(answer, own, expected)
                reasons |= dict(unsound(batch, expected, self.norm_bound))
                batches.append(batch)
            except UploadError as error:
                reasons |= {k: str(error) for k in own.tolist()}
        return batches, reasons

    def _request(self, holder: Holder, spec: Mapping[str, Any], arrays: Arrays, own: Array) -> Request:
        arrays = arrays | {"cohort": own}
        if self.keeps == "server":
            arrays["memory"] = self.memory[own]
        elif self.keeps == "client":
            arrays["counted"] = self.memory[own]
        return self.data.request(holder, "train", spec, arrays)

    def _expected(self, sent: Broadcast) -> Expected:
        memory = (len(self.algorithm.memory), self.layout.size) if self.keeps == "server" else None
        return Expected(
            sent.round,
            self.algorithm.uploads,
            self.layout.size,
            self.dtype,
            self.layout.n_coefficients // self.layout.n_outputs,
            self.layout.n_outputs,
            memory,
            names_features=self.data.is_sparse and is_coordinatewise(self.algorithm, sent.problem),
        )

    def _check(self, sent: Broadcast, present: Array, reasons: dict[int, str]) -> None:
        """Note who is missing; raise where too few are left."""
        named = {repr(self.data.ids[k]): reason for k, reason in sorted(reasons.items())}
        size = len(sent.cohort)
        minimum = max(1, size if self.minimum is None else min(self.minimum, size))
        if len(present) < minimum:
            if set(reasons.values()) == {NOT_FINITE}:
                raise DivergenceError(min(reasons))
            raise TooFewClientsError(sent.round, len(present), minimum, named)
        for name, reason in named.items():
            self.left_out.append((sent.round, name, reason))
            self.say(f"round {sent.round + 1} went on without client {name}: {reason}")

    def _memory(self, round: int, present: Array, batches: list[Batch]) -> Memory | None:
        """What the clients remember once the round counts."""
        if self.keeps == "nobody":
            return None
        if self.keeps == "client":
            return present, np.full(len(present), round)
        rows = np.empty((len(present), *self.memory.shape[1:]), self.dtype)
        for batch in batches:
            at = np.searchsorted(present, batch.clients)
            counts = np.isin(batch.clients, present)
            assert batch.memory is not None
            rows[at[counts]] = batch.memory[counts]
        return present, rows

    def _base(self, sent: Broadcast) -> Array:
        """How coordinates move that a client does not touch, the same way at all of them."""
        now = self._loops.round(sent.problem, sent.round, sent.down)
        nobody = np.empty(0, np.int64)
        [(_, uploads)] = self._loops.sparse(now, nobody, self._loops.moving(now.w), None)
        return uploads.base(self.layout)

    def _choose_layout(self, problem: BoundProblem) -> None:
        """Choose how holders keep dense rows, by the local engine's rule on the counts of all clients."""
        if self._knows_layout or self.data.is_sparse or not is_coordinatewise(self.algorithm, problem):
            return
        self._knows_layout = True
        if self.data.is_mapped:
            return
        n_outputs = self.layout.n_outputs
        check = one_each(dict.fromkeys(Tally._fields, Rule((), 0, is_count=True)))
        replies = self.data.ask_all("tally", {"n_outputs": n_outputs}, {}, check)
        counts = [self.data.by_client(replies, name) for name in Tally._fields]
        layout = chosen_layout(
            lambda chosen: Tally(*(each[chosen] for each in counts)),
            self.data.n_clients,
            self.data.n_features,
            self.data.dtype.itemsize,
            n_outputs >= SEVERAL,
        )
        self._run = {**self._run, "layout": layout}


@dataclass(frozen=True)
class Remote:
    """Run where the rows of a ``RemoteData`` are; the parameters are those of ``RemoteClients``."""

    minimum: int | None = None
    retries: int = 1
    keeps: str = "client"
    norm_bound: float = math.inf

    def __post_init__(self) -> None:
        if self.keeps not in ("client", "server"):
            raise ValueError(f"keeps must be 'client' or 'server', got {self.keeps!r}")
        if self.minimum is not None and self.minimum < 1:
            raise ValueError(f"minimum must be a whole number ≥ 1, got {self.minimum!r}")
        if self.retries < 0 or not self.norm_bound > 0.0:
            raise ValueError(f"retries must be ≥ 0 and norm_bound positive, got {self}")

    def open(
        self, task: Task, data: RemoteData, memory: Array | None = None, say: Say = say_nothing
    ) -> RemoteClients:
        """The clients of a run, ready for its rounds."""
        return RemoteClients(task, data, memory, say, **dataclasses.asdict(self))

    def open_oracles(self, data: RemoteData) -> RemoteOracles:
        """The clients of an exact solver, ready for its questions."""
        return RemoteOracles(dataclasses.replace(data, retries=self.retries))
