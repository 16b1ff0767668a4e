"""Leave-one-site-out influence: how the fit changes without each site."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unpooled._ledger import Ledger
from unpooled._validation import ClientId
from unpooled._wording import text_table
from unpooled.data.federated import FederatedData
from unpooled.data.folds import BySite
from unpooled.exact.base import refused
from unpooled.exact.choose import choose
from unpooled.exact.clients import Question, QuestionEngine, open_clients
from unpooled.exact.cross_validation import fold_tasks
from unpooled.exact.path import opened_tasks
from unpooled.exact.rounds import Server, Solve
from unpooled.exact.site import unpacked
from unpooled.exact.solve import bind, check_numbers, not_converged
from unpooled.exact.sufficient_statistics import SufficientStatistics
from unpooled.inference.argument_checks import feature_names, refuse_site_intercepts
from unpooled.kernels.arrays import Array, Float
from unpooled.problem import Problem


@dataclass(eq=False, repr=False)
class Influence:
    """The result of ``influence``: row k of ``coefs`` (K, …) is the fit without site k, ``coef`` that of all.

    ``prediction`` (K,) is the root mean square change of the linear predictions over all rows of all sites;
    NaN if clients refused the Gram matrix that it needs.
    """

    sites: tuple[ClientId, ...]
    names: tuple[str, ...]
    coef: Float
    intercept: Any
    coefs: Float
    intercepts: Float | None
    prediction: Float
    ledger: Ledger
    notes: list[str]

    @property
    def rounds(self) -> int:
        """Rounds of communication."""
        return self.ledger.rounds

    @property
    def change(self) -> Float:
        """coefs − coef, the change of each coefficient without each site."""
        return np.asarray(self.coefs - self.coef)

    @property
    def entered(self) -> Array:
        """(K, …): coefficients that are non-zero only without the site."""
        return np.asarray((self.coefs != 0) & (self.coef == 0))

    @property
    def left(self) -> Array:
        """(K, …): coefficients that are zero only without the site."""
        return np.asarray((self.coefs == 0) & (self.coef != 0))

    @property
    def deciding(self) -> tuple[ClientId, ...]:
        """The sites whose removal changes the selected columns."""
        changed = (self.entered | self.left).reshape(len(self.sites), -1).any(axis=1)
        return tuple(self.sites[k] for k in np.flatnonzero(changed))

    def summary(self) -> str:
        """A text table, most influential sites first."""
        flat = self.change.reshape(len(self.sites), -1)
        rows = []
        for k in np.argsort(-self.prediction, kind="stable"):
            j = int(np.argmax(np.abs(flat[k])))
            name = self.names[j] if len(self.names) == flat.shape[1] else str(j)
            counts = [int(self.entered[k].sum()), int(self.left[k].sum())]
            rows.append([str(self.sites[k]), float(self.prediction[k]), float(flat[k, j]), name, *counts])
        head = ["without", "prediction", "largest change", "of", "enter", "leave"]
        return "\n".join([text_table(head, rows), *self.notes])

    def __repr__(self) -> str:
        changed = f"{len(self.deciding)} of them change the support"
        return f"Influence({len(self.sites)} sites, {changed}; {self.ledger})"


def influence(
    problem: Problem,
    data: FederatedData,
    *,
    solver: Any = "auto",
    tol: float = 1e-8,
    max_rounds: int = 500,
    min_rows: int = 10,
    second_order: bool = True,
    engine: QuestionEngine | None = None,
) -> Influence:
    """Solve with all sites, and again without each site in turn.

    With sufficient statistics this takes one round, in which each site's statistics are sent separately: the
    server sees them, not only their sum. Otherwise all fits share their rounds, and one more round asks for
    the Gram matrix of the selected columns, for ``prediction``. The arguments are those of ``solve``.
    """
    bound = bind(problem, data)
    check_numbers(tol, max_rounds, min_rows)
    refuse_site_intercepts(problem, "influence")
    if data.n_clients < 2:
        raise ValueError("influence leaves out one site at a time, but the data has only one")
    chosen, notes = choose(bound, solver, min_rows, second_order)
    server = Server(open_clients(engine, data))
    tasks, left_out = fold_tasks(chosen, bound, BySite(), data.n_clients, server)
    tasks = opened_tasks(tasks, server, notes, data, left_out)
    server.run(tasks, tol, max_rounds)
    for task in tasks:
        if isinstance(task.solver, SufficientStatistics):
            task.certify(server.ledger.rounds)
    left = [task for task in tasks if task.certificate is None or task.certificate.relative > tol]
    not_converged(left, tol, server.ledger.rounds, len(tasks))
    flats = [task.solver.estimate(bound, task.state) for task in tasks]
    models = [bound.layout.unpack(flat) for flat in flats]
    moved = np.array([flat - flats[0] for flat in flats[1:]])
    prediction = _moved_predictions(tasks[0], moved, server, notes)
    return Influence(
        sites=data.ids,
        names=feature_names(data),
        coef=models[0][0],
        intercept=models[0][1],
        coefs=np.array([w for w, _ in models[1:]]),
        intercepts=np.array([b for _, b in models[1:]]) if bound.layout.n_intercepts else None,
        prediction=prediction,
        ledger=server.ledger,
        notes=notes,
    )


def _moved_predictions(task: Solve, moved: Float, server: Server, notes: list[str]) -> Float:
    """√ of the mean of (x·d + e)² over all rows (summed over outputs), for each row (d, e) of ``moved``."""
    layout, a = task.problem.layout, task.state.arrays
    C, n = layout.n_outputs, layout.n_coefficients
    p = n // C
    D = moved[:, :n].reshape(len(moved), C, p)
    e = moved[:, n:] if layout.n_intercepts else np.zeros((len(moved), C))
    if isinstance(task.solver, SufficientStatistics):
        gram, mean, columns = a["gram"], a["mean_x"], np.arange(p)
        if "center" in a:
            e = e + D @ a["center"][:p]
    else:
        columns = np.flatnonzero(D.any(axis=(0, 1)))
        [total] = server.ask([Question(task.solver, task.problem, {"features": columns})])
        if refused(total).any():
            notes.append("prediction is NaN: clients refused the Gram matrix of the selected columns.")
            return np.full(len(moved), np.nan)
        gram = unpacked(total["gram"], len(columns)) if columns.size else np.zeros((0, 0))
        mean = total["mean_x"][columns]
    D = D[:, :, columns]
    square = np.sum(D @ gram * D, axis=2) + 2.0 * e * (D @ mean) + np.square(e)
    return np.asarray(np.sqrt(np.maximum(square.sum(axis=1), 0.0)))
