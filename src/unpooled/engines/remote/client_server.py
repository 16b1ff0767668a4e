"""The process at a site that has the rows open: it answers the server's requests, and the rows never leave.

    describe   who the clients are and how their rows look
    bind       whether the targets fit a loss
    tally      how full the columns are, which decides the layout of dense rows
    train      the local loops of some clients: their uploads
    ask        the questions of exact solvers
    collect    a named summary of every client
    value, spectra, curve      the loss at a point; the curvature, for default hyper-parameters

A request carries everything that its answer depends on, except the rows and what clients remember: a client
server can be closed and opened between any two requests (``state`` is what it needs back).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from unpooled._validation import is_mapped
from unpooled.algorithms.base import Algorithm
from unpooled.data.curvature_products import client_products
from unpooled.data.federated import FederatedData
from unpooled.data.row_curvature import curvature_shares
from unpooled.engines.base import Task
from unpooled.engines.local.columns.layouts import SEVERAL, flat_rows, laid_out, tally
from unpooled.engines.local.loops import Loops, Round, loop_rows
from unpooled.engines.remote.client_memory import ClientMemory
from unpooled.engines.remote.messages import Reply, Request
from unpooled.engines.remote.specs import decode, key_of
from unpooled.exact.clients import Question, Sites
from unpooled.kernels.arrays import Array, Arrays, Float
from unpooled.losses.plain import PlainLoss
from unpooled.problem import BoundProblem, Problem

PARTS = ("solver", "problem", "fold")  # of a question
REMEMBERED = 256  # objects that were built for requests, and are kept for the next ones


class Guard(Protocol):
    """Sees what a request means before anything is computed for it; raises where that is not allowed.

    It sees every request but ``describe``, which asks for names and sizes.
    """

    def ask(self, questions: Sequence[Question], sites: Sites) -> set[int]:
        """Check questions of exact solvers; return those at points out of range, answered by infinity."""

    def collect(self, summary: Any, sites: Sites) -> None:
        """Check a summary of every client."""

    def train(
        self,
        run: Mapping[str, Any],
        algorithm: Algorithm,
        problem: BoundProblem,
        round: int,
        w: Float,
        sites: Sites,
    ) -> None:
        """Check local loops that start from w."""

    def about(self, kind: str, problem: Problem, arrays: Arrays, sites: Sites) -> None:
        """Check requests of the other kinds that are about a problem."""

    def tally(self, n_outputs: Any) -> None:
        """How full the columns are, for a model of so many outputs."""


class ClientServer:
    """The clients of ``data`` at their holder. ``handle`` raises where it cannot answer a request.

    ``threads`` as in ``engines.Local``. A ``trusted`` one unpickles a user's own objects. ``mapped`` says
    whether the rows came from mapped files, where they no longer are. A ``guard`` decides what is answered,
    except for ``describe``.
    """

    def __init__(
        self,
        data: FederatedData,
        *,
        threads: int | None = None,
        trusted: bool = False,
        mapped: bool | None = None,
        guard: Guard | None = None,
    ):
        self.data = data
        self.threads = threads
        self.trusted = trusted
        self.guard = guard
        self.mapped = is_mapped(data.X) if mapped is None else mapped
        self.memory = ClientMemory()
        self._built: dict[Hashable, Any] = {}

    def handle(self, request: Request) -> Reply:
        """The answer to a request."""
        kinds = {
            "describe": self._describe,
            "bind": self._bind,
            "tally": self._tally,
            "train": self._train,
            "ask": self._ask,
            "collect": self._collect,
            "value": self._value,
            "spectra": self._spectra,
            "curve": self._curve,
        }
        if request.kind not in kinds:
            raise ValueError(f"unknown kind of request {request.kind!r}: are the versions the same?")
        positions = request.arrays.get("positions")
        if positions is not None and len(positions) != self.data.n_clients:
            raise ValueError(
                f"the request is for {len(positions)} clients, but {self.data.n_clients} are here"
            )
        return kinds[request.kind](request.spec, request.arrays)

    def state(self) -> tuple[dict[str, Any], Arrays]:
        """What one opened anew needs back (``restore``)."""
        return self.memory.dump()

    def restore(self, spec: dict[str, Any], arrays: Arrays) -> None:
        """Take back what ``state`` returned."""
        self.memory.load(spec, arrays)

    def _describe(self, spec: Mapping[str, Any], arrays: Arrays) -> Reply:
        data = self.data
        told = {
            "ids": list(data.ids),
            "row_shape": list(data.row_shape),
            "dtype": str(data.dtype),
            "is_sparse": data.is_sparse,
            "is_weighted": data.sample_weight is not None,
            "is_mapped": self.mapped,
            "has_missing": data.has_missing,
            "feature_names": None if data.feature_names is None else list(data.feature_names),
            "digest": data.fingerprint(),
        }
        return Reply(told, {"sizes": data.sizes, "totals": data.totals})

    def _bind(self, spec: Mapping[str, Any], arrays: Arrays) -> Reply:
        problem, data = self._problem("bind", spec, arrays), self._data(spec)
        complaints = list(problem.complaints(data))
        if complaints and not self.trusted:  # they quote targets, which do not leave
            name = type(problem.loss).__name__
            complaints = [f"{said.partition(': ')[0]}: its targets do not fit {name}" for said in complaints]
        has_outputs = problem.linear is not None and not complaints
        outputs = problem.loss.outputs(data.y) if has_outputs else None
        return Reply({"outputs": outputs, "complaints": complaints}, {})

    def _tally(self, spec: Mapping[str, Any], arrays: Arrays) -> Reply:
        if self.guard is not None:
            self.guard.tally(spec["n_outputs"])
        data = self._data(spec)
        several = int(spec["n_outputs"]) >= SEVERAL
        counts = tally(flat_rows(data), data.offsets, np.arange(data.n_clients), several)
        return Reply({}, counts._asdict())

    def _train(self, spec: Mapping[str, Any], arrays: Arrays) -> Reply:
        run = spec["run"]
        problem = self._decoded(spec["problem"], arrays, "problem")
        loops, key = self._loops(spec, arrays, problem)
        cohort, positions = arrays["cohort"], arrays["positions"]
        own = np.searchsorted(positions, cohort)
        if not np.array_equal(positions[np.minimum(own, len(positions) - 1)], cohort):
            raise ValueError("the cohort has clients that are not here")
        down = {name: arrays[f"down/{name}"] for name in spec["down"]}
        now = loops.round(problem, int(spec["round"]), down)
        if self.guard is not None:
            sites = self._sites(spec, arrays)
            self.guard.train(run, loops.algorithm, problem, spec["round"], now.w, sites)
        names = list(loops.algorithm.uploads)
        told = {"round": spec["round"], "names": names}
        if loops.names_features(problem):
            return Reply(told, {"clients": cohort} | _compact(loops, now, cohort))
        memory, names_of = self._recalled(run, key, arrays, own, loops), [self.data.ids[j] for j in own]
        [(_, up, _)] = loops.whole(now, cohort, memory, None)  # one part
        sent: Arrays = {"clients": cohort, "up": up}
        if run["memory"] == "server":
            sent["memory"] = memory
        elif run["memory"] == "client":
            for name, rows in zip(names_of, memory, strict=True):
                self.memory.store(name, int(spec["round"]), rows)
        return Reply(told, sent)

    def _recalled(self, run: Mapping[str, Any], key: str, arrays: Arrays, own: Array, loops: Loops) -> Array:
        """What the clients of a cohort remember: sent with the request, or kept here."""
        kept_vectors = len(loops.algorithm.memory)
        shape = (kept_vectors, loops.layout.size if kept_vectors else 0)
        if run["memory"] == "server":
            return np.array(arrays["memory"], loops.dtype)
        memory = np.zeros((len(own), *shape), loops.dtype)
        if run["memory"] == "client":
            self.memory.begin(key)
            for s, (j, counted) in enumerate(zip(own, arrays["counted"], strict=True)):
                memory[s] = self.memory.recall(self.data.ids[j], int(counted), shape, loops.dtype)
        return memory

    def _loops(self, spec: Mapping[str, Any], arrays: Arrays, problem: BoundProblem) -> tuple[Loops, str]:
        """The local loops of a run, and its key."""
        run, positions = spec["run"], arrays["positions"]
        own = {name: a for name, a in arrays.items() if name.startswith("algorithm") or name == "positions"}
        common = {"dtype": spec["dtype"], "n_clients": spec["n_clients"]}
        layout = [list(problem.layout.shape), problem.layout.n_intercepts, type(problem.loss).__name__]
        key = key_of([run, common, layout], own)

        def build() -> Loops:
            data = self._data(spec)
            sizes = np.zeros(int(spec["n_clients"]), np.int64)
            sizes[positions] = data.sizes
            offsets = np.concatenate([[0], np.cumsum(sizes)])
            algorithm = decode(run["algorithm"], arrays, self.trusted)
            states = np.dtype(run["states"])
            task = Task(algorithm, problem, int(run["seed"]), run["batch_size"], states)
            return Loops(
                task,
                loop_rows(problem, data),
                offsets,
                self.threads,
                lambda: laid_out(flat_rows(data), offsets, run["layout"]),
            )

        loops: Loops = self._once(("loops", key), build)
        return loops, key

    def _ask(self, spec: Mapping[str, Any], arrays: Arrays) -> Reply:
        sites = self._sites(spec, arrays)
        told: Arrays = {}
        questions = []
        for q, asked in enumerate(spec["questions"]):
            given = {name: arrays[f"{q}/{name}"] for name in asked["arrays"]}
            solver, problem, fold = (self._decoded(asked[part], arrays, part) for part in PARTS)
            questions.append(Question(solver, problem, given, fold))
        out_of_range = set() if self.guard is None else self.guard.ask(questions, sites)
        for q, question in enumerate(questions):
            for k, answer, share in sites.answers(question):
                if q in out_of_range:
                    is_number = {name: array.dtype.kind == "f" for name, array in answer.items()}
                    answer = {n: np.full_like(a, np.inf) if is_number[n] else a for n, a in answer.items()}
                told |= {f"{q}/{k}/{name}": array for name, array in answer.items()}
                told[f"{q}/{k}/share"] = np.array(share)
        return Reply({}, told)

    def _collect(self, spec: Mapping[str, Any], arrays: Arrays) -> Reply:
        sites = self._sites(spec, arrays)
        summary = decode(spec["summary"], arrays, self.trusted)
        if self.guard is not None:
            self.guard.collect(summary, sites)
        answers = {k: summary(site) for k, site in zip(sites.numbers, sites.sites, strict=True)}
        return Reply({}, {f"{k}/{name}": a for k, answer in answers.items() for name, a in answer.items()})

    def _sites(self, spec: Mapping[str, Any], arrays: Arrays) -> Sites:
        numbers = arrays["positions"]
        key = ("sites", spec["dtype"], numbers.tobytes())
        sites: Sites = self._once(key, lambda: Sites(self._data(spec), numbers))
        return sites

    def _value(self, spec: Mapping[str, Any], arrays: Arrays) -> Reply:
        problem, data = self._problem("value", spec, arrays), self._data(spec)
        w, b = arrays["w"], arrays.get("intercept")
        if b is not None and b.ndim == 0:
            b = float(b)  # type: ignore[assignment]
        if problem.linear is not None:
            values = [problem.loss.value(w, c.X, c.y, c.sample_weight, b) for c in data]
        else:
            values = [PlainLoss(problem.loss).value(*c.rows, w, b) for c in data]
        return Reply({}, {"value": np.array(values)})

    def _spectra(self, spec: Mapping[str, Any], arrays: Arrays) -> Reply:
        top, longest = self._data(spec).spectra(self._problem("spectra", spec, arrays))
        return Reply({}, {"top": top, "longest": longest})

    def _curve(self, spec: Mapping[str, Any], arrays: Arrays) -> Reply:
        problem, data = self._problem("curve", spec, arrays), self._data(spec)
        return Reply({}, {"product": client_products(data, curvature_shares(problem, data), arrays["u"])})

    def _problem(self, kind: str, spec: Mapping[str, Any], arrays: Arrays) -> Problem:
        """The problem that a request of some kind is about."""
        problem: Problem = self._decoded(spec["problem"], arrays, "problem")
        if self.guard is not None:
            self.guard.about(kind, problem, arrays, self._sites(spec, arrays))
        return problem

    def _decoded(self, spec: Any, arrays: Arrays, name: str) -> Any:
        """An object of a request. One seen before is used again, with everything derived from it."""
        if spec is None:
            return None
        named = _named(spec)
        own = {key: array for key, array in arrays.items() if key in named}
        return self._once((name, key_of(spec, own)), lambda: decode(spec, arrays, self.trusted))

    def _data(self, spec: Mapping[str, Any]) -> FederatedData:
        """The rows in the precision that the request asks for."""
        data: FederatedData = self._once(("data", spec["dtype"]), lambda: self.data.astype(spec["dtype"]))
        return data

    def _once(self, key: Hashable, build: Callable[[], Any]) -> Any:
        if key not in self._built:
            if len(self._built) >= REMEMBERED:
                self._built.pop(next(iter(self._built)))
            self._built[key] = build()
        self._built[key] = self._built.pop(key)  # the last one used goes last
        return self._built[key]


def _named(spec: Any) -> set[str]:
    """The names of the arrays that a description mentions."""
    if isinstance(spec, Mapping):
        if "array" in spec:
            return {spec["array"]}
        return set[str]().union(*map(_named, spec.values()))
    return set[str]().union(*map(_named, spec)) if isinstance(spec, list) else set()


def _compact(loops: Loops, now: Round, cohort: Array) -> Arrays:
    """Sparse uploads, cut to the room that they use."""
    n_outputs, n_intercepts = now.draws.n_outputs, loops.layout.n_intercepts
    [(_, uploads)] = loops.sparse(now, cohort, np.empty(0, np.int64), None)
    feature, values = [], []
    for s, used in enumerate(uploads.used.tolist()):
        first = int(uploads.first[s])
        at = n_outputs * first + n_intercepts * s
        feature.append(uploads.feature[first : first + used])
        values.append(uploads.values[:, at : at + n_outputs * used + n_intercepts])
    return {
        "used": uploads.used,
        "feature": np.concatenate(feature),
        "values": np.concatenate(values, axis=1),
    }
