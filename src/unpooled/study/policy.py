"""What a site lets itself be asked: an allow-list made from its own copy of the study.

The coordinator is not believed. Whatever a request carries, the folds, the loss, the penalty, the solver and
its numbers, is made here once more from ``study.toml`` and must be the same (``allowed``); so must what was
agreed (``accepted``). Then the points must be such that an answer rests on enough rows (``effective``). All
of it before anything is computed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from unpooled._wording import counted
from unpooled.data.folds import BySite, Fold
from unpooled.engines.remote.messages import Reply, Request
from unpooled.engines.remote.specs import key_of
from unpooled.engines.remote.summaries import ColumnSummary, OwnIntercept
from unpooled.exact.clients import Question, Sites
from unpooled.kernels.arrays import Array, Arrays, Float
from unpooled.problem import BoundProblem, Problem
from unpooled.study.allowed import (
    NotAllowedError,
    check_fold,
    check_problem,
    check_second_order,
    check_words,
    is_finite,
    is_vector,
    shape_of,
)
from unpooled.study.config import Study
from unpooled.study.effective import Seen, point_of
from unpooled.study.envelope import Envelope
from unpooled.study.fitting import ALGORITHMS, SECOND_ORDER

PATIENCE = 12  # how many more requests may be about points out of range than about others
TRIAL = {"w", "working", "origin", "base", "tilt"}  # the words of a question about a point to be tried
EXACT_KINDS, FEDERATED_KINDS = ("collect", "ask"), ("collect", "train", "value", "spectra", "curve", "tally")


class Policy:
    """What one site answers in one study; it counts what was asked and remembers at which points.

    ``refuses`` are the kinds of statistics that the site does not send at all.
    """

    def __init__(self, study: Study, site: str, refuses: tuple[str, ...] = ()):
        self.study, self.site, self.refuses = study, site, refuses
        self.seen = Seen(study.minimum_rows)
        self.requests: set[str] = set()  # that came, whether answered or refused
        self.numbers = 0  # that have left
        self._left: set[str] = set()  # requests whose answers have
        self._taken: dict[str, set[str]] = {}
        self._dealt: dict[Any, Array] = {}
        self._astray = 0

    def request(self, request: Request, around: str) -> str:
        """Refuse kinds that the study's solver does not ask, and more requests than were agreed on.

        ``around`` is the fingerprint of the envelope. Returns that of both: the same request in the same
        envelope tells nothing more, and does not count again. A request that is refused later on counts.
        """
        study, spec = self.study, request.spec
        kinds = FEDERATED_KINDS if study.is_federated else EXACT_KINDS
        if request.kind not in kinds:
            raise NotAllowedError(
                f"{request.kind!r}",
                f"solver.method = {study.solver!r} asks for {', '.join(map(repr, kinds))} only",
            )
        n_clients, positions = spec.get("n_clients"), request.arrays.get("positions")
        is_whole = isinstance(n_clients, int) and 0 < n_clients <= len(study.sites)
        if not is_whole or positions is None or positions.shape != (1,) or not 0 <= positions[0] < n_clients:
            raise NotAllowedError(
                "rows of others than this site",
                f"expected one position below n_clients, which is {len(study.sites)} at most: "
                "are the versions the same?",
            )
        if spec.get("dtype") != "float64":
            raise NotAllowedError(f"rows as {spec.get('dtype')!r}", "a study works with float64")
        if request.kind == "curve":
            check_second_order("products of the curvature", SECOND_ORDER, self.refuses)
        questions = spec.get("questions", ())
        if len(questions) > study.max_questions:
            raise NotAllowedError(
                f"{len(questions)} questions at once", f"limits.max_questions = {study.max_questions}"
            )
        digest = key_of(json.loads(json.dumps([around, request.kind, spec])), request.arrays)
        if digest not in self.requests and len(self.requests) >= study.max_requests:
            raise NotAllowedError(
                f"more after {len(self.requests)} requests", f"limits.max_requests = {study.max_requests}"
            )
        self.requests.add(digest)
        return digest

    def prepare(self, envelope: Envelope) -> None:
        """Take what was agreed; it may change only where a site is left out and all begins again."""
        assert envelope.agreement is not None
        arrays, most = envelope.arrays, self.study.attempts
        center = {name: array for name, array in arrays.items() if name == "center"}
        scaling = {name: array for name, array in arrays.items() if name != "center"}
        given = {"agreement": key_of(json.loads(json.dumps(envelope.agreement.plain())), {})}
        given |= {"scaling": key_of(None, scaling)} if scaling else {}
        given |= {"center of the target": key_of(None, center)} if center else {}
        for what, digest in given.items():
            taken = self._taken.setdefault(what, set())
            if digest not in taken and len(taken) >= most:
                raise NotAllowedError(
                    f"another {what}",
                    f"with limits.minimum_sites = {self.study.minimum_sites} a study begins "
                    f"{counted(most, 'time')} at most",
                )
        for what, digest in given.items():  # all of it, or nothing
            self._taken[what].add(digest)
        self._agreed = envelope.agreement

    def without_squares(self, reply: Reply) -> Reply:
        """A reply without the diagonal of a matrix that this site does not send; solvers can do without."""
        if not set(self.refuses) & {*SECOND_ORDER, "diagonal"}:
            return reply
        stay = ("diagonal", "diagonal_rows")
        return Reply(reply.spec, {n: a for n, a in reply.arrays.items() if n.rpartition("/")[2] not in stay})

    def leaving(self, reply: Reply, digest: str) -> None:
        """Refuse an answer that makes too many numbers leave in all, or that holds what does not leave.

        ``digest`` is what ``request`` returned; an answer that has left before counts once.
        """
        for name in reply.arrays:
            kind = name.rpartition("/")[2]
            if kind in self.refuses:
                raise NotAllowedError(f"{kind!r}", f"this site was started with --refuse {kind}")
        is_new = digest not in self._left
        more = sum(int(np.size(array)) for array in reply.arrays.values()) if is_new else 0
        if self.numbers + more > self.study.max_numbers:
            raise NotAllowedError(
                f"{more} numbers more after {self.numbers}", f"limits.max_numbers = {self.study.max_numbers}"
            )
        self.numbers += more
        self._left.add(digest)

    def ask(self, questions: Sequence[Question], sites: Sites) -> set[int]:
        """Questions of an exact solver; the places of those whose points count as out of range.

        Exponentials lie on few rows at points that honest solvers try and leave again. There the loss is said
        to be infinite, as where it overflows.
        """
        for question in questions:
            check_problem(self.study, self._agreed, question.problem)
            check_fold(self.study, question)
            check_words(self.study, question, self.refuses)
        out_of_range = set()
        for q, question in enumerate(questions):
            given, asked = question.arrays, self._rows(question.fold, sites)
            straight = {name: array for name, array in given.items() if name != "tilt"}
            try:
                points = [*([given["w"]] if "w" in given else []), *given.get("models", ())]
                self._points(question.problem, points, asked, sites, straight)
                if "tilt" in given:
                    self._points(question.problem, [given["base"]], asked, sites, given)
            except NotAllowedError:
                if self.study.model != "poisson" or not {"w"} <= set(given) <= TRIAL:
                    raise
                out_of_range.add(q)
        self._astray = max(0, self._astray + (1 if out_of_range else -1))
        if self._astray > PATIENCE:
            raise NotAllowedError("sums at points of its choice", f"they keep resting on {_few(self.study)}")
        return out_of_range

    def collect(self, summary: Any, sites: Sites) -> None:
        """A summary of the columns, or the site's own intercept."""
        study = self.study
        if isinstance(summary, ColumnSummary):
            if not study.standardise and study.missing == "refuse":
                raise NotAllowedError(
                    "means of columns", f"model.standardise = {study.standardise} has no need of them"
                )
        elif isinstance(summary, OwnIntercept):
            if study.intercept != "sites":
                raise NotAllowedError("this site's intercept", f"model.intercept = {study.intercept!r}")
            check_problem(study, self._agreed, summary.problem)
            if not is_vector(summary.problem, summary.flat):
                raise NotAllowedError(
                    *_no_point("its intercept", summary.flat, (summary.problem.layout.size,))
                )
            self._points(summary.problem, [summary.flat], self._rows(None, sites), sites)
        else:
            raise NotAllowedError(f"a summary {type(summary).__name__}", "no study has it")

    def train(
        self,
        run: Mapping[str, Any],
        algorithm: Any,
        problem: BoundProblem,
        round: int,
        w: Float,
        sites: Sites,
    ) -> None:
        """Local steps from w."""
        study, kind = self.study, ALGORITHMS[self.study.solver]
        if (run["batch_size"] or 0) != study.batch_size:
            raise NotAllowedError(
                f"minibatches of {run['batch_size']} rows", f"solver.batch_size = {study.batch_size}"
            )
        if type(algorithm) is not kind:
            raise NotAllowedError(f"steps of {type(algorithm).__name__}", f"solver.method = {study.solver!r}")
        own = kind(local_steps=study.local_steps)
        for each in fields(own):
            mine, given = getattr(own, each.name), getattr(algorithm, each.name)
            if mine is not None and mine != given:  # those that are None are chosen by the coordinator
                name = "solver.local_steps" if each.name == "local_steps" else f"{study.solver}'s {each.name}"
                raise NotAllowedError(f"{each.name} = {given!r}", f"{name} = {mine!r}")
        if run["seed"] != study.seed or run["states"] != "float64":
            raise NotAllowedError(f"minibatches of the seed {run['seed']!r}", f"solver.seed = {study.seed}")
        if not isinstance(round, int) or not 0 <= round < study.rounds:
            raise NotAllowedError(f"round {round!r}", f"solver.rounds = {study.rounds}")
        check_problem(study, self._agreed, problem, any_lam=True)
        n, rows = sites.sites[0].n_rows, study.batch_size * study.local_steps
        drawn = min(1.0, rows / n) if rows else 1.0
        self._points(problem, [w], self._rows(None, sites), sites, drawn=drawn)

    def about(self, kind: str, problem: Problem, arrays: Arrays, sites: Sites) -> None:
        """The loss at a point, bounds and products of the curvature."""
        bound = problem.laid_out(*shape_of(self._agreed))
        check_problem(self.study, self._agreed, bound)
        if kind == "value":
            shape, b = bound.layout.shape, arrays.get("intercept")
            if arrays["w"].shape != shape or not is_finite(arrays["w"]) or not is_finite(b):
                raise NotAllowedError(*_no_point("the loss", arrays["w"], shape))
            self._points(bound, [bound.layout.pack(arrays["w"], b)], self._rows(None, sites), sites)
        if kind == "curve":
            size = shape_of(self._agreed)[0][0] + bool(bound.layout.n_intercepts)
            if arrays["u"].shape != (size,) or not is_finite(arrays["u"]):
                raise NotAllowedError(*_no_point("a product of the curvature", arrays["u"], (size,)))

    def tally(self, n_outputs: Any) -> None:
        """How full the columns are, for a model of so many outputs."""
        own = shape_of(self._agreed)[1] or 1
        if type(n_outputs) is not int or n_outputs != own:
            raise NotAllowedError(
                f"how full the columns are with {n_outputs!r} outputs",
                f"model.kind = {self.study.model!r} has {own} here",
            )

    def _rows(self, fold: Fold | None, sites: Sites) -> Array:
        """A mask of the rows that a question is about; a fold and its rest must be large enough each."""
        n, least = sites.sites[0].n_rows, self.study.minimum_rows
        if fold is None:
            return np.ones(n, dtype=bool)
        key = (fold.folds, sites.numbers[0], n)
        if key not in self._dealt:
            self._dealt[key] = fold.folds.of(sites.numbers[0], sites.ids[0], n)
        inside = self._dealt[key] == fold.number
        if not isinstance(fold.folds, BySite) and any(0 < part.sum() < least for part in (inside, ~inside)):
            raise NotAllowedError(
                f"a fold of {int(inside.sum())} of this site's {n} rows",
                f"limits.minimum_rows = {least}: use fewer folds, or leave this site out",
            )
        return np.asarray(inside if fold.held_out else ~inside)

    def _points(
        self,
        problem: BoundProblem,
        points: Sequence[Float],
        asked: Array,
        sites: Sites,
        question: Arrays | None = None,
        drawn: float = 1.0,
    ) -> None:
        """Refuse points at which answers, or their differences from earlier ones, rest on too few rows."""
        least = self.study.minimum_rows
        if least < 2 or not asked.any():
            return
        for w in points:
            w = np.asarray(w, dtype=np.float64)
            point = point_of(problem, sites.sites[0], question or {}, w, asked)
            said = self.seen.isolates(point, asked, drawn)
            if said is not None:
                raise NotAllowedError("sums at a point of its choice", f"{said} {_few(self.study)}")
            self.seen.remember(point, asked)


def _no_point(what: str, given: Array, shape: tuple[int, ...]) -> tuple[str, str]:
    """What was asked at a point that is none, and the rule against it."""
    wrong = "with NaN or infinite numbers" if given.shape == shape else f"of shape {given.shape}"
    return f"{what} at a point {wrong}", f"expected {shape} finite numbers: are the versions the same?"


def _few(study: Study) -> str:
    wider = "a larger model.delta" if study.model == "huber" else "scaled columns"
    return (
        f"fewer than limits.minimum_rows = {study.minimum_rows} rows by their weight "
        f"(a larger λ, {wider} or a smaller limit would spread it)"
    )
