"""How many exchanges a study will take: guessed from its settings, then from what is asked and refused.

One λ takes one exchange with sufficient statistics, a handful with Newton steps, some twenty with gradients;
a path goes on from each group of λ to the next in fewer. The numbers are those of ordinary tables, so the
forecast says "about". A site that keeps second-order statistics to itself, because of a rare level say, can
make many out of few, which is said as soon as it is seen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from unpooled.engines.remote.messages import Failure, Holder, Reply, Request
from unpooled.exact.path import AT_ONCE
from unpooled.study.config import Study
from unpooled.study.events import Watch

ONE = {"SufficientStatistics": 1, "ProxNewton": 6}  # exchanges for one λ
NEXT = {"SufficientStatistics": 0, "ProxNewton": 3}  # and for each further group of a path
GRADIENTS, NEXT_GRADIENTS = 20, 12  # the same with gradients
MIXED = 1.5  # times as many where some sites keep second-order statistics to themselves
MANY = 2  # times as many as before are worth a sentence
LOCAL_STEPS = 17  # exchanges of a solver with rounds besides these: curvature, columns, the objective
SQUARED = ("lasso", "elastic net", "group lasso")
BY_NAME = {"sufficient_statistics": "SufficientStatistics", "prox_newton": "ProxNewton"}
REFUSALS = {
    "refused_rows": "it has fewer than {least} rows, in a fold perhaps",
    "refused_columns": "fewer than {least} of its rows stand out in a column",
}


class Forecast:
    """Listens to the exchanges of one attempt at a study."""

    def __init__(self, study: Study, watch: Watch):
        self.study, self.watch = study, watch
        automatic = "SufficientStatistics" if study.model in SQUARED else "ProxNewton"
        self.solver = BY_NAME.get(study.solver, automatic if study.solver == "auto" else "gradients")
        self.asked, self.before = 0, 0  # questions of the fit; those of solvers that were given up
        self.usual = 0  # what was expected before anything was refused
        self.refused: dict[Holder, str] = {}

    @property
    def expected(self) -> int:
        """Exchanges in all."""
        study = self.study
        around = 1 + (study.standardise or study.missing == "mean") + (study.intercept == "sites")
        if study.is_federated:
            return around + study.rounds + LOCAL_STEPS
        fit = float(ONE.get(self.solver, GRADIENTS))
        if isinstance(study.lam, str):
            groups = math.ceil(study.n_lambdas / AT_ONCE)
            fit += (groups - 1) * NEXT.get(self.solver, NEXT_GRADIENTS) + (study.lam == "cv")
        if self.refused and self.solver in ONE:
            fit *= MIXED
        return around + self.before + math.ceil(fit)

    def ask(self, requests: Mapping[Holder, Request]) -> None:
        """Take in what is about to be asked."""
        request = next(iter(requests.values()))
        if request.kind != "ask":
            return
        solver = _solver(request)
        if solver != self.solver:
            self.solver, self.before = solver, self.asked
        self.asked += 1
        if not self.refused:
            self.usual = self.expected
        elif self.usual and self.expected >= MANY * self.usual:
            who = "; ".join(f"{site}: {why}" for site, why in self.refused.items())
            text = (
                f"second-order statistics are kept at a site ({who}): about {self.expected} exchanges are "
                f"expected instead of {self.usual}. To merge a rare level, or to leave its column out of "
                "data.features, takes fewer."
            )
            self.watch("note", {"text": text})
            self.usual = 0  # it is said once

    def answered(self, replies: Mapping[Holder, Reply | Failure]) -> None:
        """Take in who keeps something to itself."""
        for site, reply in replies.items():
            for name, array in reply.arrays.items() if isinstance(reply, Reply) else ():
                kind = name.rpartition("/")[2]
                if kind in REFUSALS and bool(array.any()):
                    why = REFUSALS[kind].format(least=self.study.minimum_rows)
                    self.refused.setdefault(site, why)


def _solver(request: Request) -> str:
    """The kind of solver that asks; a study's own are known by name."""
    questions: list[dict[str, Any]] = request.spec.get("questions", [])
    found = {str(each["solver"].get("is")) for each in questions}
    return found.pop() if len(found) == 1 else "gradients"
