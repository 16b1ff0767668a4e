"""The clients of a run whose rows are elsewhere: a round asks their holders and averages what counts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from unpooled._ledger import Traffic
from unpooled._wording import counted
from unpooled.aggregation.base import Aggregate, Mean
from unpooled.engines.gathered import Gathered, Weigh
from unpooled.engines.local.columns.occupied import SEVERAL, Tally, chosen_form
from unpooled.engines.local.columns.touched import add_uploads, fill, idle_increments, traffic
from unpooled.engines.local.engine import DivergenceError, first_memory
from unpooled.engines.local.loops import Loops, is_coordinatewise
from unpooled.engines.remote.failures import TooFewClientsError, exchange
from unpooled.engines.remote.messages import Holder, Request
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
    stacked,
    unsound,
)
from unpooled.engines.task import Task
from unpooled.exact.expected import Rule
from unpooled.kernels.arrays import Array, Arrays
from unpooled.kernels.rows import SparseRows
from unpooled.problem import BoundProblem

if TYPE_CHECKING:
    from unpooled.engines.remote.data import RemoteData


class RemoteClients:
    """All clients of a run, at the holders of ``data``.

    Parameters
    ----------
    minimum : clients that must take part in a round; None for the whole cohort. Holders that do not answer
        are asked again, ``retries`` times; then, as where an upload is refused, the round goes on without
        their clients, if so many remain. ``notes`` says who was left out.
    keeps : who keeps what clients remember from round to round. With "server" it comes and goes with every
        request, and nothing is lost with a holder; with "desk" it stays with the holder, and the server
        knows for each client which of its rounds counted last: that is then ``memory``, (K,).
    norm_bound : an upload of a larger norm is refused.
    """

    def __init__(
        self,
        task: Task,
        data: RemoteData,
        memory: Array | None = None,
        *,
        minimum: int | None = None,
        retries: int = 1,
        keeps: str = "desk",
        norm_bound: float = math.inf,
    ):
        self.algorithm, self.layout, self.dtype = task.algorithm, task.problem.layout, task.dtype
        self.data = data
        self.minimum = minimum
        self.retries = retries
        self.norm_bound = norm_bound
        self.say: Callable[[str], None] = lambda sentence: None
        self.left_out: list[tuple[int, str, str]] = []  # round, client, why
        self.keeps = keeps if self.algorithm.memory else "nobody"
        if self.keeps == "desk":
            self.memory = np.full(data.n_clients, -1) if memory is None else np.array(memory, np.int64)
            if self.memory.shape != (data.n_clients,):
                raise ValueError("the run's clients kept no memory at their holders: start it anew")
        else:
            self.memory = first_memory(task, data.n_clients, memory)
        spec, self._arrays = encode(self.algorithm, data.trusted, "algorithm")
        self._run = {
            "algorithm": spec,
            "seed": int(task.seed),
            "batch_size": task.batch_size,
            "states": str(task.dtype),
            "memory": self.keeps,
            "form": None,
        }
        self._knows_form = False
        # the server's own loop, for what moves by itself at every client: it has no rows
        starts, nothing = np.zeros(2, np.int32), np.empty(0, data.dtype)
        rows = SparseRows(nothing, np.empty(0, np.int32), starts, data.n_features, nothing, nothing)
        self._loops = Loops(task, rows, np.zeros(2, np.int64))

    def remember(self, memory: tuple[Array, Array]) -> None:
        """Let clients keep what they computed in a round that counts."""
        cohort, rows = memory
        self.memory[cohort] = rows

    def notes(self) -> list[str]:
        """Who was left out of how many rounds, and why at last."""
        missed = Counter(name for _, name, _ in self.left_out)
        last = {name: (round, why) for round, name, why in self.left_out}
        return [
            f"client {name} was left out of {counted(missed[name], 'round')}, last of round {at + 1}: {why}."
            for name, (at, why) in last.items()
        ]

    def round(
        self,
        problem: BoundProblem,
        round: int,
        down: Arrays,
        cohort: Array,
        weigh: Weigh,
        aggregate: Aggregate,
    ) -> Gathered:
        """What the uploads of those who took part come to.

        Raises ``TooFewClientsError`` where these are too few, or ``DivergenceError`` where that is because
        uploads were not finite.
        """
        names_features = self.data.is_sparse and is_coordinatewise(self.algorithm, problem)
        self._find_form(problem)
        batches, reasons = self._uploads(problem, round, down, cohort, names_features)
        present = np.array([k for k in cohort.tolist() if k not in reasons], dtype=np.int64)
        self._check(round, cohort, present, reasons)
        weights, participation = weigh(present)
        expected = self._expected(round, names_features)
        mean = np.zeros((len(self.algorithm.uploads), self.layout.size))
        is_mean = isinstance(aggregate, Mean)
        if names_features:
            base = self._base(problem, round, down)
            uploads = in_order(present, batches, expected)
            if is_mean:
                mean = weights.sum() * base
                add_uploads(mean, base, weights, uploads, expected.n_columns, expected.n_outputs)
            else:
                up = np.empty((len(present), *mean.shape), self.dtype)
                fill(up, 0, base, uploads, expected.n_columns, expected.n_outputs)
                aggregate.combine(mean, weights, up)
            sent = traffic(Traffic(0, 0), uploads, self.layout.n_outputs, self.layout)
        else:
            if is_mean:
                add_whole(mean, weights, present, batches)
            else:
                aggregate.combine(mean, weights, stacked(present, batches))
            sent = Traffic(len(present) * mean.size, len(present) * mean.size * self.dtype.itemsize)
        vectors = dict(zip(self.algorithm.uploads, mean, strict=True))
        return Gathered(vectors, participation, present, self._memory(round, present, batches), sent)

    def _uploads(
        self, problem: BoundProblem, round: int, down: Arrays, cohort: Array, names_features: bool
    ) -> tuple[list[Batch], dict[int, str]]:
        """What came, and for clients without an upload that counts the reason."""
        spec, arrays = encode(problem, self.data.trusted, "problem")
        arrays |= self._arrays | {f"down/{name}": vector for name, vector in down.items()}
        asked = {holder: np.intersect1d(own, cohort) for holder, own in self.data.holders.items()}
        asked = {holder: own for holder, own in asked.items() if own.size}
        told = {"run": self._run, "problem": spec, "round": round, "down": list(down)}
        requests = {holder: self._request(holder, told, arrays, own) for holder, own in asked.items()}
        replies, silent = exchange(self.data.transport, requests, self.retries)
        expected = self._expected(round, names_features)
        batches, reasons = [], dict[int, str]()
        for holder, own in asked.items():
            try:
                if holder in silent:
                    raise UploadError(silent[holder])
                batch = read(replies[holder], own, expected)
                reasons |= dict(unsound(batch, expected, self.norm_bound))
                batches.append(batch)
            except UploadError as error:
                reasons |= {k: str(error) for k in own.tolist()}
        return batches, reasons

    def _request(self, holder: Holder, spec: Any, arrays: Arrays, own: Array) -> Request:
        arrays = arrays | {"cohort": own}
        if self.keeps == "server":
            arrays["memory"] = self.memory[own]
        elif self.keeps == "desk":
            arrays["counted"] = self.memory[own]
        return self.data.request(holder, "train", spec, arrays)

    def _expected(self, round: int, names_features: bool) -> Expected:
        memory = (len(self.algorithm.memory), self.layout.size) if self.keeps == "server" else None
        n_columns = self.layout.n_coefficients // self.layout.n_outputs
        names, size = self.algorithm.uploads, self.layout.size
        return Expected(
            round, names, size, self.dtype, n_columns, self.layout.n_outputs, memory, names_features
        )

    def _check(self, round: int, cohort: Array, present: Array, reasons: dict[int, str]) -> None:
        """Note who is missing; raise where too few are left."""
        named = {repr(self.data.ids[k]): reason for k, reason in sorted(reasons.items())}
        minimum = len(cohort) if self.minimum is None else min(self.minimum, len(cohort))
        if len(present) < max(1, minimum):
            if set(reasons.values()) == {NOT_FINITE}:
                raise DivergenceError(min(reasons))
            raise TooFewClientsError(round, len(present), max(1, minimum), named)
        for name, reason in named.items():
            self.left_out.append((round, name, reason))
            self.say(f"round {round + 1} went on without client {name}: {reason}")

    def _memory(self, round: int, present: Array, batches: list[Batch]) -> Any:
        """What the clients will remember once the round counts."""
        if self.keeps == "nobody":
            return None
        if self.keeps == "desk":
            return present, np.full(len(present), round)
        rows = np.empty((len(present), *self.memory.shape[1:]), self.dtype)
        for batch in batches:
            at = np.searchsorted(present, batch.clients)
            counts = np.isin(batch.clients, present)
            assert batch.memory is not None
            rows[at[counts]] = batch.memory[counts]
        return present, rows

    def _base(self, problem: BoundProblem, round: int, down: Arrays) -> Array:
        """The increments of coordinates that a client does not touch, the same at all of them."""
        now = self._loops.round(problem, round, down)
        base = np.zeros((len(self.algorithm.uploads), self.layout.size))
        nobody = np.empty(0, np.int64)
        for _, uploads in self._loops.touched(now, nobody, self._loops.moving(now.w), None):
            idle_increments(base, uploads, self.data.n_features, self.layout.n_outputs)
        return base

    def _find_form(self, problem: BoundProblem) -> None:
        """How dense rows are kept, by the rule of the local engine on the counts of all clients."""
        if self._knows_form or self.data.is_sparse or not is_coordinatewise(self.algorithm, problem):
            return
        self._knows_form = True
        if self.data.is_mapped:
            return
        n_outputs = self.layout.n_outputs
        check = one_each(dict.fromkeys(Tally._fields, Rule((), 0, is_count=True)))
        replies = self.data.ask_all("tally", {"n_outputs": n_outputs}, {}, check)
        counts = [self.data.by_client(replies, name) for name in Tally._fields]
        form = chosen_form(
            lambda chosen: Tally(*(each[chosen] for each in counts)),
            self.data.n_clients,
            self.data.n_features,
            self.data.dtype.itemsize,
            n_outputs >= SEVERAL,
        )
        self._run = {**self._run, "form": form}
